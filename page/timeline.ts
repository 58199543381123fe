import type { Reported, ShownHolder, ShownOne, ShownWaiter } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { arrange, h, say } from "./dom.ts";
import { many, number, time } from "./format.ts";
import { each, person } from "./parts.ts";
import { grow, tick } from "./ticking.ts";

/** What the axis may reach back to, in ms: each has thirds that are easy to read. */
const SPANS = [30_000, 60_000, 180_000, 360_000, 900_000] as const;
/** Processes that hold or wait, of which so many are shown until all are asked for. */
const SHOWN = 12;

/** ms ago. */
interface Interval {
  readonly from: number;
  readonly to: number;
}

/** One call, or one process in the queue. */
interface Entry {
  readonly key: string;
  readonly className: string;
  /** When it ended, in ms ago; a text for what has not. */
  readonly when: number | string;
  readonly who: () => Node;
  /** What came of it: words, and a time that grows while it lasts. */
  readonly what: readonly [before: string, ms: number | null, after: string];
  readonly more: string | null;
  readonly waited: Interval | null;
  readonly held: Interval | null;
}

/** The calls for a lock in the order of time: those that have it, those that wait, those that ended. */
export class Timeline {
  readonly element: HTMLElement;
  readonly #axis = h("div", { class: "axis", "aria-hidden": "true" });
  readonly #list = h("ol", { class: "rows", role: "list" });
  readonly #all: HTMLElement;
  readonly #note = h("p", { class: "note" });
  readonly #rows = new Map<string, Row>();
  #last: ShownOne | null = null;
  #isWhole = false;

  /** `title`: above it. */
  constructor(title: HTMLElement) {
    const show = (): void => {
      this.#isWhole = true;
      if (this.#last) this.show(this.#last);
    };
    this.#all = h("button", { type: "button", class: "all", click: show });
    const head = h("div", { class: "timeline-head" }, title, this.#axis);
    this.element = h("section", { class: "timeline" }, head, this.#list, this.#note);
  }

  show(seen: ShownOne): void {
    this.#last = seen;
    const { lock, holders, waiters, reported, age } = seen;
    const waits = lock?.kind === "election" && lock.holder ? "stands by for " : "waits for ";
    const present = [...holders.map(holding), ...waiters.map((one, i) => waiting(one, i, waits))];
    const shown = this.#isWhole ? present : fewOf(holders.length, present);
    const entries = [...shown, ...(reported ?? []).map(ended)];
    const oldest = entries.reduce((ms, { waited, held }) => Math.max(ms, (waited ?? held)?.from ?? 0), 0);
    const span = SPANS.find((one) => one >= oldest) ?? SPANS[SPANS.length - 1] ?? 0;
    const ticks = [1, 2 / 3, 1 / 3].map((part) => roundly(part * span));
    this.#axis.replaceChildren(...ticks.map((text, i) => h("span", {}, i === 0 ? `${text} ago` : text)));
    const rowOf = (entry: Entry): HTMLElement => {
      const row = this.#rows.get(entry.key) ?? new Row(entry);
      this.#rows.set(entry.key, row);
      row.show(entry, span, age);
      return row.element;
    };
    arrange(this.#list, each(entries, rowOf, "li"));
    for (const [key, { element }] of this.#rows) if (!element.isConnected) this.#rows.delete(key);
    const hidden = present.length - shown.length;
    if (hidden === 0) this.#all.remove();
    else this.#list.after(this.#all);
    say(this.#all, `Show ${number(hidden)} more that hold it or wait`);
    this.#note.replaceChildren(...noteOf(seen));
    this.#note.hidden = this.#note.childNodes.length === 0;
    this.#axis.hidden = this.#list.hidden = entries.length === 0;
  }
}

const roundly = (ms: number): string =>
  ms < 60_000 ? `${Math.round(ms / 1_000)} s` : `${Math.round(ms / 60_000)} min`;

/** Of many, the first that hold it and the first that wait. */
function fewOf(holding: number, present: readonly Entry[]): Entry[] {
  if (present.length <= 2 * SHOWN) return [...present];
  return present.filter((_, i) => i < SHOWN || (i >= holding && i < holding + SHOWN));
}

const holding = (holder: ShownHolder): Entry => {
  const { id, heldFor } = holder;
  return {
    ...{ key: `holds ${id}`, className: "holds", when: "now", who: () => person(holder) },
    what: ["has it for ", heldFor, ""],
    more: null,
    waited: null,
    held: heldFor === null ? null : { from: heldFor, to: 0 },
  };
};

const waiting = (waiter: ShownWaiter, i: number, what: string): Entry => {
  const { id, waitedFor } = waiter;
  const when = i === 0 ? "next" : number(i + 1);
  return {
    ...{ key: `waits ${id}`, className: "waits", when, who: () => person(waiter) },
    what: [what, waitedFor, ""],
    more: null,
    waited: waitedFor === null ? null : { from: waitedFor, to: 0 },
    held: null,
  };
};

const HOW = {
  released: "released it after ",
  lost: "lost it, and noticed that after ",
  giveup: "gave up after ",
  holds: "had it for ",
} as const;
const UNENDED = " or longer: its end is not reported yet";

function ended(call: Reported): Entry {
  const { how, ago, waitedFor, heldFor, why, client, site } = call;
  const isServed = why === "served";
  const began = ago + (heldFor ?? 0);
  const waited = heldFor !== null && waitedFor > 0 ? ` (waited ${time(waitedFor)})` : "";
  const reason = why === null || isServed ? null : visible(why);
  const more = [reason, site === null ? null : visible(site)].filter((one) => one !== null).join(" · ");
  return {
    key: `ended ${client} ${call.call} ${how} ${isServed}`,
    className: isServed ? "released" : how === "holds" ? "unended" : how,
    when: ago,
    who: () => person({ ...call, id: client, units: 1, mode: null }),
    what: [
      isServed ? "got the result of another run after " : HOW[how],
      heldFor ?? waitedFor,
      (how === "holds" ? UNENDED : "") + waited,
    ],
    more: more === "" ? null : more,
    waited: waitedFor > 0 ? { from: began + waitedFor, to: began } : null,
    held: heldFor === null ? null : { from: began, to: ago },
  };
}

class Row {
  readonly element: HTMLElement;
  readonly #when = h("span", { class: "when time" });
  readonly #before = h("span");
  readonly #time = h("span", { class: "time" });
  readonly #after = h("span");
  readonly #more = h("small");
  readonly #waited = h("span", { class: "waited" });
  readonly #held = h("span", { class: "held" });

  constructor(entry: Entry) {
    const what = h("span", { class: "what" }, this.#before, this.#time, this.#after, " ", this.#more);
    const track = h("span", { class: "track", "aria-hidden": "true" }, this.#waited, this.#held);
    this.element = h("li", { class: entry.className }, this.#when, entry.who(), what, track);
  }

  show(
    { when, what: [before, ms, after], more, waited, held }: Entry,
    span: number,
    age: number | null,
  ): void {
    if (typeof when === "string") say(this.#when, when);
    else tick(this.#when, age, (passed) => say(this.#when, `${time(when + passed)} ago`));
    // Redis has not recorded when some began.
    say(this.#before, ms === null ? before.replace(/ for $/, "") : before);
    if (typeof when === "string" && ms !== null) grow(this.#time, ms, age);
    else say(this.#time, ms === null ? "" : time(ms));
    say(this.#after, after);
    say(this.#more, more ?? "");
    place(this.#waited, waited, span);
    place(this.#held, held, span);
  }
}

function place(bar: HTMLElement, interval: Interval | null, span: number): void {
  bar.hidden = interval === null || interval.to > span;
  if (!interval) return;
  const from = Math.min(1, interval.from / span);
  bar.style.left = `${(1 - from) * 100}%`;
  bar.style.right = `${(interval.to / span) * 100}%`;
}

function noteOf({ reported, processes, untold }: ShownOne): (Node | string)[] {
  if (reported === null) return [];
  const notes: (Node | string)[] = [];
  if (processes === 0)
    notes.push(
      "What was before is not known: no process is being observed. ",
      h("a", { href: "#/wait-times" }, "How to turn it on"),
    );
  else if (reported.length === 0)
    notes.push(
      `No call has ended in the last 15 minutes, in which ${many(processes, "process", "processes")} reported.`,
    );
  if (untold !== null) notes.push(notes.length > 0 ? " " : "", visible(untold));
  return notes;
}

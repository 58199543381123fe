import type { Happened, ShownHolder, ShownLock, ShownOne, ShownWaiter } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { breakHold, recallLock } from "./actions.ts";
import { arrange, h, say } from "./dom.ts";
import { clientOf, many, number, time } from "./format.ts";
import { badge, each, LeaseBar, nothing, person } from "./parts.ts";
import { grow } from "./ticking.ts";
import { levelOf } from "./verdict.ts";
import type { View } from "./view.ts";

/** One lock: its holders, its queue in order, and its history. */
export class One implements View<ShownOne> {
  readonly #lock: Pick<ShownLock, "kind" | "name">;
  readonly #back: string;
  readonly #holders = h("ul", { class: "cards" });
  readonly #queue = h("ol", { class: "queue" });
  readonly #held = h("h2", {}, "Held by");
  readonly #waiting = h("h2", {}, "Waiting");
  readonly #longest = h("span", { class: "wait time" });
  readonly #free = h("div");
  readonly #past = h("section", { class: "past" });
  readonly #cards = new Map<string, Card>();
  readonly #places = new Map<string, Place>();

  /** `back`: where the link above leads. */
  constructor(lock: Pick<ShownLock, "kind" | "name">, back: string) {
    this.#lock = lock;
    this.#back = back;
  }

  begin(view: Element): void {
    const { kind, name } = this.#lock;
    view.replaceChildren(
      h(
        "div",
        { class: "title" },
        h("a", { class: "back", href: this.#back, "aria-label": "Back to the locks" }, "←"),
        h("h1", {}, visible(name)),
        badge(kind),
      ),
      this.#free,
      h("section", { class: "held" }, this.#held, this.#holders),
      h("section", { class: "waiting" }, this.#waiting, this.#queue),
      this.#past,
    );
  }

  show({
    lock,
    holders,
    value,
    waiters,
    history,
    processes,
    actions,
    age,
    isPartial,
    trouble,
    untold,
  }: ShownOne): void {
    this.#free.replaceChildren(
      // As long as not all were asked for, it may be held.
      ...(lock || trouble || isPartial
        ? []
        : [nothing("It is free, and no process waits.", "This page keeps checking.")]),
    );
    const permits = lock?.permits ?? null;
    const used = holders.reduce((sum, { units }) => sum + units, 0);
    say(this.#held, permits === null ? "Held by" : `Held by · ${number(used)} of ${many(permits, "permit")}`);
    const longest = lock?.longest ?? null;
    this.#waiting.replaceChildren(
      lock ? waitingInWords(lock, waiters.length) : "",
      ...(longest === null ? [] : [", up to ", this.#longest]),
      waiters.length > 0 ? ", the next one first" : "",
    );
    this.#waiting.dataset.level = levelOf(longest);
    grow(this.#longest, longest, age);
    this.#held.hidden = holders.length === 0;
    this.#waiting.hidden = !lock;
    const cardOf = (holder: ShownHolder): HTMLElement => {
      const card = this.#cards.get(holder.id) ?? new Card(this.#lock, holder, actions);
      this.#cards.set(holder.id, card);
      card.show(holder, age, lock?.kept === true, value);
      return card.element;
    };
    const placeOf = (waiter: ShownWaiter): HTMLElement => {
      const place = this.#places.get(waiter.id) ?? new Place(waiter);
      this.#places.set(waiter.id, place);
      grow(place.for, waiter.waitedFor, age);
      return place.element;
    };
    arrange(this.#holders, each(holders, cardOf, "li"));
    arrange(this.#queue, each(waiters, placeOf, "li"));
    for (const known of [this.#cards, this.#places])
      for (const [id, { element }] of known) if (!element.isConnected) known.delete(id);
    const past = history ? [h("h2", {}, "History"), pastOf(history, processes)] : [];
    if (history && untold !== null) past.push(h("p", { class: "note" }, visible(untold)));
    this.#past.replaceChildren(...past);
  }
}

/** `places`: in the queue, of which a fair lock has one for each caller. */
function waitingInWords({ kind, holder, waitingProcesses: count }: ShownLock, places: number): string {
  if (places === 0) return "No process waits";
  if (kind === "election")
    return holder ? `${many(count, "candidate")} on standby` : `No leader, ${many(count, "candidate")}`;
  const callers = places > count ? `, with ${many(places, "caller")}` : "";
  return `${many(count, "waiting process", "waiting processes")}${callers}`;
}

class Card {
  readonly element: HTMLElement;
  readonly #for = h("dd");
  readonly #lease = new LeaseBar();
  readonly #since = h("span");
  readonly #late = h(
    "p",
    { class: "late bad" },
    "Its lease was not renewed for ",
    this.#since,
    ": its process may hang, or may not reach Redis.",
  );
  /** What a leader publishes. */
  readonly #value = h("dd", { class: "mono" });
  readonly #published = h("div", {}, h("dt", {}, "Value"), this.#value);
  readonly #kept = h("p", { class: "note" }, "Its process has it cached, and may not use it.");
  readonly #recall: HTMLElement | null = null;
  readonly #actions: HTMLElement;
  readonly #canBreak: boolean;

  constructor(lock: Pick<ShownLock, "kind" | "name">, holder: ShownHolder, actions: ShownOne["actions"]) {
    this.#canBreak = actions.includes("break");
    if (actions.includes("recall"))
      this.#recall = h("button", { type: "button", click: () => void recallLock(lock, holder) }, RECALL);
    this.#actions = h(
      "p",
      { class: "actions" },
      this.#recall,
      this.#canBreak &&
        h(
          "button",
          { type: "button", class: "danger", click: () => breakHold(lock, holder) },
          "Force-release …",
        ),
    );
    this.element = h(
      "li",
      { class: "card" },
      person(holder),
      this.#kept,
      this.#late,
      h(
        "dl",
        {},
        h("div", {}, h("dt", {}, "Held for"), this.#for),
        h("div", {}, h("dt", {}, "Lease left"), h("dd", {}, this.#lease.element)),
        holder.token !== null &&
          h("div", {}, h("dt", {}, "Token"), h("dd", { class: "mono" }, String(holder.token))),
        this.#published,
      ),
      this.#actions,
    );
  }

  show(holder: ShownHolder, age: number | null, kept: boolean, value: string | null): void {
    this.#kept.hidden = !kept;
    if (this.#recall) this.#recall.hidden = !kept;
    this.#actions.hidden = !this.#canBreak && !(this.#recall && kept);
    grow(this.#for, holder.heldFor, age);
    this.#lease.show(holder, age);
    this.#late.hidden = holder.unrenewed === null;
    grow(this.#since, holder.unrenewed, age);
    say(this.#value, visible(value ?? ""));
    this.#published.hidden = value === null;
  }
}

const RECALL = "Ask the holder to release";

class Place {
  readonly element: HTMLElement;
  readonly for = h("span", { class: "time" });

  constructor(waiter: ShownWaiter) {
    this.element = h("li", {}, person(waiter), this.for);
  }
}

const WHAT = {
  acquire: "got it, after",
  giveup: "gave up, after",
  lost: "lost it, and noticed that after",
} as const;

function pastOf(history: readonly Happened[], processes: number): HTMLElement {
  if (history.length === 0)
    return processes > 0
      ? h(
          "p",
          { class: "note" },
          `No events in the last 15 minutes, in which ${many(processes, "process", "processes")} reported.`,
        )
      : h(
          "p",
          { class: "note" },
          "No history: no process is being observed. ",
          h("a", { href: "#/wait-times" }, "How to turn it on"),
        );
  return h("ul", { class: "history" }, ...each(history, happened, "li"));
}

function happened(event: Happened): HTMLElement {
  const { what, ago, waitedFor, heldFor, why } = event;
  return h(
    "li",
    { class: what },
    h("span", { class: "time" }, `${time(ago)} ago`),
    h("span", {}, `${clientOf(event)} ${WHAT[what]} ${time(heldFor ?? waitedFor)}`),
    why !== null && h("small", {}, visible(why)),
  );
}

import { LONG_WAIT, type ShownHolder, type ShownLock, type ShownOne } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { breakHold, recallLock } from "./actions.ts";
import { arrange, h, say } from "./dom.ts";
import { many, number, time } from "./format.ts";
import { badge, each, LeaseBar, nothing, person } from "./parts.ts";
import { grow, tick } from "./ticking.ts";
import { Timeline } from "./timeline.ts";
import { levelOf } from "./verdict.ts";
import type { View } from "./view.ts";

/** One lock: its holders, and the timeline of all calls for it. */
export class One implements View<ShownOne> {
  readonly #lock: Pick<ShownLock, "kind" | "name">;
  readonly #back: string;
  readonly #holders = h("ul", { class: "cards" });
  readonly #held = h("h2", {}, "Held by");
  readonly #waiting = h("h2", {}, "Waiting");
  readonly #longest = h("span", { class: "wait time" });
  readonly #free = h("div");
  readonly #timeline = new Timeline(this.#waiting);
  readonly #cards = new Map<string, Card>();

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
      this.#timeline.element,
    );
  }

  show(seen: ShownOne): void {
    const { lock, holders, value, waiters, actions, age, isPartial, trouble } = seen;
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
      lock ? waitingInWords(lock, waiters.length) : "Earlier",
      ...(longest === null ? [] : [", up to ", this.#longest]),
      waiters.length > 0 ? ", the next one first" : "",
    );
    this.#waiting.dataset.level = levelOf(longest);
    grow(this.#longest, longest, age);
    this.#held.hidden = holders.length === 0;
    const cardOf = (holder: ShownHolder): HTMLElement => {
      const card = this.#cards.get(holder.id) ?? new Card(this.#lock, holder, actions);
      this.#cards.set(holder.id, card);
      card.show(holder, age, lock?.kept === true, value, longest);
      return card.element;
    };
    arrange(this.#holders, each(holders, cardOf, "li"));
    for (const [id, { element }] of this.#cards) if (!element.isConnected) this.#cards.delete(id);
    this.#timeline.show(seen);
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
  readonly #alive = h("span", { class: "time" });
  readonly #busy = h("span", { class: "time" });
  readonly #stuck = h(
    "p",
    { class: "stuck" },
    ...["Renewed ", this.#alive, " ago: its process lives, but its work has not ended for ", this.#busy],
    ". Restart that process, or force-release the lock.",
  );
  readonly #heartbeat = h("dd");
  readonly #renewed = h("div", {}, h("dt", {}, "Last renewed"), this.#heartbeat);
  readonly #site = h("dd", { class: "mono" });
  readonly #called = h("div", {}, h("dt", {}, "Called at"), this.#site);
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
      this.#stuck,
      h(
        "dl",
        {},
        h("div", {}, h("dt", {}, "Held for"), this.#for),
        h("div", {}, h("dt", {}, "Lease left"), h("dd", {}, this.#lease.element)),
        this.#renewed,
        holder.token !== null &&
          h("div", {}, h("dt", {}, "Token"), h("dd", { class: "mono" }, String(holder.token))),
        this.#called,
        this.#published,
      ),
      this.#actions,
    );
  }

  /** `longest`: ms that others have waited. */
  show(
    holder: ShownHolder,
    age: number | null,
    kept: boolean,
    value: string | null,
    longest: number | null,
  ): void {
    const { renewed, unrenewed, site, lease } = holder;
    // The watchdog renews when a third has passed. A process that has not by now may have died.
    const isAlive = unrenewed === null && renewed !== null && renewed <= (lease ?? 0) / 2;
    this.#kept.hidden = !kept;
    if (this.#recall) this.#recall.hidden = !kept;
    this.#actions.hidden = !this.#canBreak && !(this.#recall && kept);
    grow(this.#for, holder.heldFor, age);
    this.#lease.show(holder, age);
    this.#late.hidden = unrenewed === null;
    grow(this.#since, unrenewed, age);
    this.#stuck.hidden = kept || !isAlive || (longest ?? 0) < LONG_WAIT;
    grow(this.#alive, renewed, age);
    grow(this.#busy, holder.heldFor, age);
    this.#renewed.hidden = renewed === null;
    if (renewed !== null)
      tick(this.#heartbeat, age, (passed) => say(this.#heartbeat, `${time(renewed + passed)} ago`));
    say(this.#site, visible(site ?? ""));
    this.#called.hidden = site === null;
    say(this.#value, visible(value ?? ""));
    this.#published.hidden = value === null;
  }
}

const RECALL = "Ask the holder to release";

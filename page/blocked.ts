import type { ShownBlock, ShownBlocked, ShownClient } from "../src/tools/ui/shown.ts";
import { harmless } from "../src/util/visible.ts";
import { deadlock } from "./deadlock.ts";
import { h } from "./dom.ts";
import { many } from "./format.ts";
import { each, lockLink, nothing, person } from "./parts.ts";
import { grow } from "./ticking.ts";
import type { View } from "./view.ts";

/** Callers that wait for each other; and which clients keep which others waiting, as trees. */
export class Blocked implements View<ShownBlocked> {
  readonly #circles = h("ul", { class: "deadlocks" });
  readonly #tree = h("ul", { class: "tree" });
  readonly #note = h("p", { class: "note" });
  readonly #empty = h("div");
  #shown = "";

  begin(view: Element): void {
    view.replaceChildren(this.#circles, this.#note, this.#tree, this.#empty);
  }

  show({ circles, clients, isCut, isPartial, age, trouble, unread }: ShownBlocked): void {
    // Times go on by themselves: built anew is only what has another form.
    const form = JSON.stringify([circles, clients, isCut, isPartial, unread], (key, value) =>
      TIMES.has(key) ? undefined : value,
    );
    if (form === this.#shown) return;
    this.#shown = form;
    const focused = document.activeElement?.getAttribute("href");
    this.#circles.replaceChildren(...each(circles ?? [], (one) => deadlock(one, age), "li"));
    this.#tree.replaceChildren(...each(clients, (client) => branch(client, age), "li"));
    const links = [...document.querySelectorAll<HTMLElement>("main a")];
    if (focused && document.activeElement === document.body)
      links.find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
    const notes = [
      form.includes('"circle":"sign"') && SIGN,
      unread !== null && harmless(unread),
      isCut && "There are more than can be shown here.",
    ];
    this.#note.textContent = notes.filter((note) => note !== false).join(" ");
    this.#note.hidden = this.#note.textContent === "";
    const isEmpty = clients.length === 0 && trouble === null && !isPartial;
    this.#empty.replaceChildren(
      ...(isEmpty
        ? [
            nothing(
              "No process is blocked.",
              "A process that holds a lock appears here while others wait for it.",
            ),
          ]
        : []),
    );
  }
}

const SIGN =
  "Where it says “deadlock not proven”, processes wait for each other. It is a deadlock if the same caller holds the one lock and waits for the other; a process with several callers may be listed by chance.";

/** What differs each time. */
const TIMES: ReadonlySet<string> = new Set(["heldFor", "waitedFor", "remaining"]);

const CIRCLES = {
  deadlock: "waits in a deadlock",
  possible: "perhaps waits in a deadlock",
  sign: "deadlock not proven",
} as const;

function branch(client: ShownClient, age: number | null): HTMLElement {
  const { waitedFor, calls, circle, isElsewhere, blocks } = client;
  const ago = h("span", { class: "time" });
  grow(ago, waitedFor, age);
  return h(
    "li",
    { class: circle ? `client circle in-${circle}` : "client" },
    h(
      "div",
      { class: "client-line" },
      person(client),
      calls > 1 && h("small", {}, many(calls, "call")),
      calls > 0 && waitedFor !== null && h("small", {}, "waits for ", ago),
      circle !== null && h("strong", {}, CIRCLES[circle]),
      isElsewhere && calls > 0 && h("small", {}, "shown above"),
    ),
    blocks.length > 0 && h("ul", {}, ...blocks.map((block) => held(block, age))),
  );
}

function held(block: ShownBlock, age: number | null): HTMLElement {
  const ago = h("span", { class: "time" });
  grow(ago, block.heldFor, age);
  return h(
    "li",
    { class: "block" },
    h("div", { class: "holds" }, h("small", {}, "holds"), lockLink(block), h("small", {}, "for ", ago)),
    h("ul", {}, ...block.waiters.map((waiter) => branch(waiter, age))),
  );
}

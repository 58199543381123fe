import type { ShownBlock, ShownBlocked, ShownClient } from "../src/ui/shown.ts";
import { h } from "./dom.ts";
import { many } from "./format.ts";
import { lockLink, nothing, person } from "./parts.ts";
import { grow } from "./ticking.ts";
import type { View } from "./view.ts";

/** Which clients keep which others waiting, as trees. */
export class Blocked implements View<ShownBlocked> {
  readonly #tree = h("ul", { class: "tree" });
  readonly #note = h("p", { class: "note" });
  readonly #empty = h("div");
  #shown = "";

  begin(view: Element): void {
    view.replaceChildren(this.#note, this.#tree, this.#empty);
  }

  show({ clients, isCut, age, trouble }: ShownBlocked): void {
    // Times go on by themselves: built anew is only what has another form.
    const form = JSON.stringify(clients, (key, value) =>
      key === "for" || key === "left" ? undefined : value,
    );
    if (form === this.#shown) return;
    this.#shown = form;
    this.#tree.replaceChildren(...clients.map((client) => branch(client, age)));
    const hasCircle = form.includes('"isCircle":true');
    this.#note.textContent = hasCircle
      ? "Processes in a circle wait for each other. That is a deadlock if the same work holds the one lock and waits for the other; a process that serves several callers may be in a circle by chance."
      : isCut
        ? "There are more than can be shown here."
        : "";
    this.#note.hidden = this.#note.textContent === "";
    const isEmpty = clients.length === 0 && trouble === null;
    this.#empty.replaceChildren(
      ...(isEmpty
        ? [
            nothing(
              "Nobody waits for anybody.",
              "A client that holds a lock that others want stands here, with those behind it.",
            ),
          ]
        : []),
    );
  }
}

function branch(client: ShownClient, age: number): HTMLElement {
  const { owner, calls, isCircle, isElsewhere, blocks } = client;
  const ago = h("span", { class: "time" });
  grow(ago, owner.for, age);
  return h(
    "li",
    { class: isCircle ? "client circle" : "client" },
    h(
      "div",
      { class: "client-line" },
      person(owner),
      calls > 1 && h("small", {}, many(calls, "call")),
      calls > 0 && owner.for !== null && h("small", {}, "waits for ", ago),
      isCircle && h("strong", {}, "waits in a circle"),
      isElsewhere && calls > 0 && h("small", {}, "shown above"),
    ),
    blocks.length > 0 && h("ul", {}, ...blocks.map((block) => held(block, age))),
  );
}

function held(block: ShownBlock, age: number): HTMLElement {
  const ago = h("span", { class: "time" });
  grow(ago, block.for, age);
  return h(
    "li",
    { class: "block" },
    h("div", { class: "holds" }, h("small", {}, "holds"), lockLink(block), h("small", {}, "for ", ago)),
    h("ul", {}, ...block.waiters.map((waiter) => branch(waiter, age))),
  );
}

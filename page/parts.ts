import type { ShownHolder, ShownLock, ShownParty } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { h, say } from "./dom.ts";
import { kindOf, linkTo, many, nameOf, placeOf, time } from "./format.ts";
import { tick } from "./ticking.ts";

/** What is shown in more than one view. */
export const badge = (kind: ShownLock["kind"]): HTMLElement =>
  h("span", { class: `badge ${kind}` }, kindOf(kind));

export const lockLink = (lock: Pick<ShownLock, "kind" | "name">): HTMLAnchorElement =>
  h("a", { class: "name", href: linkTo(lock), title: visible(lock.name) }, visible(lock.name));

/** A label, and where it runs. */
export function person(party: ShownParty): HTMLElement {
  const detail = [
    party.label === null ? null : placeOf(party),
    party.mode === "read" ? "reads" : party.mode === "write" ? "writes" : null,
    party.units > 1 ? many(party.units, "permit") : null,
  ].filter((text) => text !== null);
  return h(
    "span",
    { class: "person", title: visible(party.id) },
    h("b", {}, nameOf(party)),
    " ",
    detail.length > 0 && h("small", {}, detail.join(" · ")),
  );
}

/** How much of the lease is left. */
export class LeaseBar {
  readonly element: HTMLElement;
  readonly #fill = h("span", { class: "fill" });
  readonly #bar = h("span", { class: "bar", "aria-hidden": "true" }, this.#fill);
  readonly #text = h("span", { class: "left" });

  constructor() {
    this.element = h("span", { class: "lease" }, this.#text, this.#bar);
  }

  show(holder: ShownHolder | null, age: number | null): void {
    const { element } = this;
    element.hidden = holder === null;
    if (!holder) return;
    const { remaining, lease, unrenewed } = holder;
    // Without its length, what remains of a lease is no part of anything.
    this.#bar.classList.toggle("unknown", lease === null);
    delete element.dataset.state;
    element.title =
      unrenewed !== null
        ? `not renewed for ${time(unrenewed)}`
        : remaining === null || lease !== null
          ? ""
          : UNKNOWN;
    if (remaining === null) {
      tick(element, age, () => {});
      say(this.#text, "no end");
      return;
    }
    tick(element, age, (passed) => {
      const rest = Math.max(0, remaining - passed);
      say(this.#text, time(rest));
      if (lease === null) return;
      const share = Math.min(1, rest / lease);
      this.#fill.style.width = `${Math.round(share * 100)}%`;
      element.dataset.state = share > 0.4 ? "fine" : share > 0.15 ? "low" : "ending";
    });
  }
}

const UNKNOWN = "Redis does not say how long this lease is. Its next renewal will show it.";

/**
 * An element for each; in place of one that cannot be shown, what stands in its way, so that it
 * takes no other along.
 */
export const each = <T, E extends Element>(
  all: readonly T[],
  show: (one: T) => E,
  tag: "li" | "tr",
): (E | HTMLElement)[] =>
  all.map((one) => {
    try {
      return show(one);
    } catch (error) {
      const why = `This cannot be shown: ${visible(String(error))}`;
      return h(tag, { class: "unshown" }, tag === "tr" ? h("td", { colspan: "6" }, why) : why);
    }
  });

/** A table that stays one for a screen reader where CSS shows it as a list. */
export const table = (name: string, caption: string, heads: readonly Node[], body: Node): HTMLElement =>
  h(
    "table",
    { class: name, role: "table" },
    h("caption", { class: "unseen" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...heads)),
    body,
  );

export const head = (properties: Record<string, string>, ...children: (Node | string)[]): HTMLElement =>
  h("th", { scope: "col", role: "columnheader", ...properties }, ...children);

export const cell = (name: string, ...children: (Node | string)[]): HTMLElement =>
  h("td", { class: name, role: "cell" }, ...children);

/** Where there is nothing to show. */
export const nothing = (title: string, ...more: (Node | string)[]): HTMLElement =>
  h("div", { class: "nothing" }, h("h2", {}, title), h("p", {}, ...more));

import type { ShownHolder, ShownLock, ShownOwner } from "../src/ui/shown.ts";
import { h, say } from "./dom.ts";
import { kindOf, linkTo, many, nameOf, placeOf, time, visible } from "./format.ts";
import { tick } from "./ticking.ts";

/** What is shown in more than one view. */
export const badge = (kind: ShownLock["kind"]): HTMLElement =>
  h("span", { class: `badge ${kind}` }, kindOf(kind));

export const lockLink = (lock: Pick<ShownLock, "kind" | "name">): HTMLAnchorElement =>
  h("a", { class: "name", href: linkTo(lock), title: visible(lock.name) }, visible(lock.name));

/** A label, and where it runs below it. */
export function person(owner: ShownOwner): HTMLElement {
  const detail = [
    owner.label === null ? null : placeOf(owner),
    owner.mode === "read" ? "reads" : owner.mode === "write" ? "writes" : null,
    owner.units > 1 ? many(owner.units, "permit") : null,
  ].filter((text) => text !== null);
  return h(
    "span",
    { class: "person", title: visible(owner.id) },
    h("b", {}, nameOf(owner)),
    detail.length > 0 && h("small", {}, detail.join(" · ")),
  );
}

/** The most that was left of each hold: how long its lease is, as far as this page has seen. At first the next usual one. */
const longest = new Map<number, number>();
const USUAL = [1, 2, 5, 10, 30, 60, 300, 3_600].map((s) => s * 1_000);

/** How much of the lease is left. */
export class LeaseBar {
  readonly element: HTMLElement;
  readonly #fill = h("span", { class: "fill" });
  readonly #text = h("span", { class: "left" });

  constructor() {
    this.element = h(
      "span",
      { class: "lease" },
      h("span", { class: "bar", "aria-hidden": "true" }, this.#fill),
      this.#text,
    );
  }

  show(holder: ShownHolder | null, age: number): void {
    const { element } = this;
    element.hidden = holder === null;
    if (!holder) return;
    const { left, token } = holder;
    if (left === null) {
      tick(element, age, () => {});
      this.#fill.style.width = "100%";
      say(this.#text, "no end");
      return;
    }
    if (longest.size > 5_000) longest.clear();
    const whole = Math.max(
      left,
      (token === null ? undefined : longest.get(token)) ?? USUAL.find((ms) => ms >= left) ?? 1,
    );
    if (token !== null) longest.set(token, whole);
    tick(element, age, (passed) => {
      const rest = Math.max(0, left - passed);
      const share = rest / whole;
      this.#fill.style.width = `${Math.round(share * 100)}%`;
      element.dataset.state = share > 0.4 ? "fine" : share > 0.15 ? "low" : "ending";
      say(this.#text, time(rest));
    });
  }
}

/** Where there is nothing to show. */
export const nothing = (title: string, ...more: (Node | string)[]): HTMLElement =>
  h("div", { class: "nothing" }, h("h2", {}, title), h("p", {}, ...more));

import type { ShownLock, ShownNow } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { arrange, h, say } from "./dom.ts";
import { clientOf, linkTo, many, number, time } from "./format.ts";
import { badge, each, LeaseBar, lockLink, nothing, person } from "./parts.ts";
import { grow, tick } from "./ticking.ts";
import type { View } from "./view.ts";

/** All locks, those first for which somebody has waited longest. */
export class Now implements View<ShownNow> {
  readonly #rows = new Map<string, Row>();
  readonly #body = h("tbody");
  readonly #summary = h("p", { class: "summary" });
  readonly #search: HTMLInputElement;
  readonly #table: HTMLElement;
  readonly #empty = h("div");

  /** `searched`: tells what is looked for. */
  constructor(search: string, searched: (text: string) => void) {
    let timer = 0;
    this.#search = h("input", {
      type: "search",
      id: "search",
      placeholder: "Name, label or host, or order:*",
      maxlength: "200",
      "aria-label": "Search",
      autocomplete: "off",
      spellcheck: "false",
      input: () => {
        clearTimeout(timer);
        timer = setTimeout(() => searched(this.#search.value), 200);
      },
    });
    this.#search.value = search;
    const head = ["Lock", "Held by", "For", "Lease left", "Waiting processes", "Longest wait"];
    this.#table = h(
      "table",
      { class: "now" },
      h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
      this.#body,
    );
  }

  begin(view: Element): void {
    view.replaceChildren(h("div", { class: "tools" }, this.#search, this.#summary), this.#table, this.#empty);
  }

  show({ locks, fitting, total, isByName, isPartial, age, trouble }: ShownNow): void {
    const show = (lock: ShownLock): HTMLElement => {
      const key = `${lock.kind} ${lock.name}`;
      const row = this.#rows.get(key) ?? new Row(lock);
      this.#rows.set(key, row);
      row.show(lock, age);
      return row.element;
    };
    arrange(this.#body, each(locks, show, "tr"));
    for (const [key, row] of this.#rows) if (!row.element.isConnected) this.#rows.delete(key);
    const cut = fitting > locks.length ? `, ${number(locks.length)} of ${number(fitting)} shown` : "";
    const found = fitting === total ? many(total, "lock") : `${number(fitting)} of ${many(total, "lock")}`;
    const how = isByName ? ", by their names alone" : "";
    say(this.#summary, fitting === total && cut === "" ? "" : `${found}${cut}${how}`);
    this.#table.hidden = locks.length === 0;
    this.#empty.hidden = locks.length > 0;
    if (locks.length === 0 && trouble === null && isPartial) this.#empty.replaceChildren();
    else if (locks.length === 0 && trouble === null)
      this.#empty.replaceChildren(
        total === 0
          ? nothing(
              "Nobody holds a lock.",
              "A lock appears here when somebody takes it or waits for it, and goes when it is free.",
            )
          : nothing(
              "No lock fits.",
              isByName ? "Only names were looked through." : "Names, labels and hosts were looked through.",
            ),
      );
  }
}

class Row {
  readonly element: HTMLElement;
  readonly #holder = h("td", { class: "holder", "data-is": "held by" });
  readonly #for = h("span");
  readonly #lease = new LeaseBar();
  readonly #waiters = h("span", { class: "count" });
  readonly #waited = h("span");
  readonly #lost = h("small", { class: "loss" });
  #shown = "";

  constructor(lock: ShownLock) {
    const open = (event: Event): void => {
      // Links do that by themselves, and a text that somebody selects is no click.
      if (event.target instanceof HTMLAnchorElement || getSelection()?.isCollapsed === false) return;
      location.hash = linkTo(lock);
    };
    this.element = h(
      "tr",
      { click: open },
      h("td", { class: "lock" }, lockLink(lock), badge(lock.kind), this.#lost),
      this.#holder,
      h("td", { class: "time", "data-is": "for" }, this.#for),
      h("td", { class: "leases", "data-is": "lease left" }, this.#lease.element),
      h("td", { class: "time", "data-is": "waiting processes" }, this.#waiters),
      h("td", { class: "time", "data-is": "longest wait" }, this.#waited),
    );
  }

  show(lock: ShownLock, age: number | null): void {
    const { holder, holderCount, waitingProcesses: waiting, longest, kept, permits, lost } = lock;
    const shown = JSON.stringify([holder?.id, holder?.label, holder?.units, holderCount, kept, permits]);
    if (shown !== this.#shown) {
      this.#shown = shown;
      const parts: (Node | null)[] = holder ? [person(holder)] : [h("i", {}, "free")];
      if (holderCount > 1) parts.push(h("small", { class: "more" }, `and ${number(holderCount - 1)} more`));
      if (permits !== null) parts.push(h("small", { class: "more" }, `of ${many(permits, "permit")}`));
      if (kept) parts.push(h("small", { class: "more" }, "kept, perhaps with nobody inside"));
      this.#holder.replaceChildren(...parts.filter((part) => part !== null));
    }
    grow(this.#for, holder?.heldFor ?? null, age);
    this.#lease.show(holder, age);
    say(this.#waiters, waiting === 0 ? "–" : waiting >= 1_000 ? "1 000 or more" : number(waiting));
    this.element.classList.toggle("waited", waiting > 0);
    grow(this.#waited, longest, age);
    this.#lost.hidden = lost === null;
    if (lost) {
      tick(this.#lost, lost.ago + (age ?? 0), (passed) => say(this.#lost, `lost ${time(passed)} ago`));
      this.#lost.title = `${clientOf(lost.client)} lost it, after ${time(lost.heldFor)}: ${visible(lost.why ?? "not told")}`;
    }
  }
}

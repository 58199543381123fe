import { LONG_WAIT, type Only, type ShownLock, type ShownNow } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { arrange, h, say } from "./dom.ts";
import { clientOf, linkTo, many, number, time } from "./format.ts";
import { badge, cell, each, head, LeaseBar, lockLink, nothing, person, table } from "./parts.ts";
import { grow, tick } from "./ticking.ts";
import { levelOf } from "./verdict.ts";
import type { View } from "./view.ts";

/** The columns: their titles, and what sorts by each when it is chosen first. */
const COLUMNS = [
  ["Lock", "name"],
  ["Held by", "holder"],
  ["Held for", "-held"],
  ["Lease left", "left"],
  ["Waiting processes", "-waiting"],
  ["Longest wait", "-wait"],
] as const;
const DEFAULT = "-wait";
/** The filters: their titles, and what is said where nothing fits. */
const ONLY: readonly (readonly [only: Only, title: string, none: string, fitting: string])[] = [
  ["held", "Held", "No lock is held.", "held"],
  ["waited", "Waited for", "No process is waiting.", "waited for"],
  ["long", "Long", "No process has waited for long.", `waited for since ${time(LONG_WAIT)} or longer`],
];
const columnOf = (sort: string): string => sort.replace("-", "");
const reversed = (sort: string): string => (sort.startsWith("-") ? columnOf(sort) : `-${sort}`);

/** All locks, or those that the filters leave, in the order of a column. */
export class Now implements View<ShownNow> {
  readonly #rows = new Map<string, Row>();
  readonly #body = h("tbody", { role: "rowgroup" });
  readonly #summary = h("p", { class: "summary" });
  readonly #search: HTMLInputElement;
  readonly #only: ReadonlyMap<string, { readonly button: HTMLElement; readonly count: HTMLElement }>;
  readonly #sort: HTMLSelectElement;
  readonly #heads: readonly HTMLElement[];
  readonly #table: HTMLElement;
  readonly #empty = h("div");
  readonly #filters: URLSearchParams;
  readonly #changed: () => void;

  /** `filters`: "search", "only" and "sort", which this view changes. */
  constructor(filters: URLSearchParams, changed: () => void) {
    this.#filters = filters;
    this.#changed = changed;
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
        timer = setTimeout(() => this.#set("search", this.#search.value.trim()), 200);
      },
    });
    this.#search.value = filters.get("search") ?? "";
    this.#only = new Map(
      ONLY.map(([only, title]) => {
        const count = h("span", { class: "number" });
        const toggle = (): void => this.#set("only", filters.get("only") === only ? "" : only);
        const button = h("button", { type: "button", class: "filter", click: toggle }, title, " ", count);
        return [only, { button, count }];
      }),
    );
    const choose = (): void => this.#set("sort", this.#sort.value);
    this.#sort = h(
      "select",
      { "aria-label": "Sort by", change: choose },
      ...COLUMNS.map(([title, sort]) => h("option", { value: sort }, title)),
    );
    this.#heads = COLUMNS.map(([title, sort]) => {
      const click = (): void => this.#set("sort", this.#now === sort ? reversed(sort) : sort);
      return head({}, h("button", { type: "button", click }, title, h("span", { "aria-hidden": "true" })));
    });
    const caption = "Locks that are held or waited for. The buttons in the head sort them.";
    this.#table = table("now", caption, this.#heads, this.#body);
    this.#mark();
  }

  begin(view: Element): void {
    const buttons = [...this.#only.values()].map(({ button }) => button);
    const filters = h(
      "div",
      { class: "filters", role: "group", "aria-label": "Only these locks" },
      ...buttons,
    );
    const tools = h("div", { class: "tools" }, this.#search, filters, this.#sort, this.#summary);
    view.replaceChildren(tools, this.#table, this.#empty);
  }

  /** What the locks are sorted by. */
  get #now(): string {
    return this.#filters.get("sort") ?? DEFAULT;
  }

  #set(name: string, value: string): void {
    if (value === "" || (name === "sort" && value === DEFAULT)) this.#filters.delete(name);
    else this.#filters.set(name, value);
    this.#mark();
    this.#changed();
  }

  #mark(): void {
    const by = this.#now;
    for (const [i, [, sort]] of COLUMNS.entries()) {
      const isSorted = columnOf(by) === columnOf(sort);
      if (isSorted) this.#sort.value = sort;
      const order = by.startsWith("-") ? "descending" : "ascending";
      const title = this.#heads[i];
      title?.setAttribute("aria-sort", isSorted ? order : "none");
      const arrow = title?.querySelector("span");
      if (arrow) say(arrow, isSorted ? (order === "ascending" ? " ↑" : " ↓") : "");
    }
    for (const [only, { button }] of this.#only)
      button.setAttribute("aria-pressed", String(this.#filters.get("only") === only));
  }

  show({
    locks,
    fitting,
    total,
    heldLocks,
    waitedLocks,
    longLocks,
    isByName,
    isCut,
    isPartial,
    age,
    trouble,
  }: ShownNow): void {
    const counts = { held: heldLocks, waited: waitedLocks, long: longLocks };
    for (const [only] of ONLY) {
      const { button, count } = this.#only.get(only) ?? {};
      // A filter that leaves nothing is of use to none, except to the viewer who wants to end it.
      if (button) button.hidden = counts[only] === 0 && this.#filters.get("only") !== only;
      if (count) say(count, number(counts[only]));
      button?.classList.toggle(`some-${only}`, counts[only] > 0);
    }
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
    const how = isByName ? ", found by their names alone" : "";
    const sorted = isCut && this.#now !== DEFAULT ? ", sorted among the longest waits and holds" : "";
    say(this.#summary, fitting === total && cut === "" ? "" : `${found}${cut}${how}${sorted}`);
    this.#table.hidden = locks.length === 0;
    this.#empty.hidden = locks.length > 0;
    if (locks.length > 0 || trouble !== null) return;
    this.#empty.replaceChildren(...(isPartial ? [] : [this.#nothing(total, isByName)]));
  }

  #nothing(total: number, isByName: boolean): HTMLElement {
    if (total === 0)
      return nothing(
        "No lock is held.",
        "A lock appears here when a process takes it or waits for it, and goes when it is free.",
      );
    const only = ONLY.find(([one]) => one === this.#filters.get("only"));
    if (only && !this.#filters.has("search"))
      return nothing(only[2], `None of ${many(total, "lock")} is ${only[3]}.`);
    const read = isByName ? "Only names were searched." : "Names, labels and hosts were searched.";
    return nothing("No lock fits.", only ? `${read} Only locks that are ${only[3]} fit.` : read);
  }
}

class Row {
  readonly element: HTMLElement;
  readonly #holder = cell("holder");
  readonly #for = h("span");
  readonly #lease = new LeaseBar();
  readonly #waiters = h("span", { class: "count" });
  readonly #longest = h("span");
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
      { role: "row", click: open },
      cell("lock", lockLink(lock), " ", badge(lock.kind), " ", this.#lost),
      this.#holder,
      cell("held time", this.#for),
      cell("left time", this.#lease.element),
      cell("waiting time", this.#waiters),
      cell("wait time", this.#longest),
    );
  }

  show(lock: ShownLock, age: number | null): void {
    const { holder, holderCount, waitingProcesses: waiting, longest, kept, permits, lost } = lock;
    const shown = JSON.stringify([holder?.id, holder?.label, holder?.units, holderCount, kept, permits]);
    if (shown !== this.#shown) {
      this.#shown = shown;
      const parts: (Node | null)[] = holder ? [person(holder)] : [h("i", {}, "free")];
      const more = [
        holderCount > 1 ? `and ${number(holderCount - 1)} more` : null,
        permits === null ? null : `of ${many(permits, "permit")}`,
        kept ? "cached" : null,
      ].filter((text) => text !== null);
      const title = kept ? "Its process may not use it." : null;
      if (more.length > 0) parts.push(h("small", { title }, more.join(" · ")));
      this.element.classList.toggle("free", holder === null);
      this.#holder.replaceChildren(...parts.filter((part) => part !== null));
    }
    grow(this.#for, holder?.heldFor ?? null, age);
    this.#lease.show(holder, age);
    say(this.#waiters, waiting === 0 ? "–" : waiting >= 1_000 ? "1 000 or more" : number(waiting));
    // The candidates of an election stand by for as long as its leader is well.
    const isStandby = waiting > 0 && lock.kind === "election" && holder !== null;
    this.element.classList.toggle("waited", waiting > 0 && !isStandby);
    grow(this.#longest, longest, age);
    if (isStandby) say(this.#longest, "standby");
    this.element.dataset.level = levelOf(longest);
    this.#lost.hidden = lost === null;
    if (lost) {
      tick(this.#lost, lost.ago + (age ?? 0), (passed) => say(this.#lost, `lost ${time(passed)} ago`));
      this.#lost.title = `${clientOf(lost)} lost it, and noticed that after ${time(lost.heldFor)}: ${visible(lost.why ?? "not told")}`;
    }
  }
}

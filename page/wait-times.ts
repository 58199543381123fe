import type { ShownWaits, ShownWaitTimes } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { arrange, h, say, svg } from "./dom.ts";
import { linkTo, many, number, time } from "./format.ts";
import { cell, each, head, nothing, table } from "./parts.ts";
import { grow } from "./ticking.ts";
import { levelOf } from "./verdict.ts";
import type { View } from "./view.ts";

const STEPS = 60;
/** ms from which a wait counts as long, by class. */
const LEVELS: readonly (readonly [number, string])[] = [
  [10_000, "w5"],
  [2_000, "w4"],
  [500, "w3"],
  [100, "w2"],
  [0, "w1"],
];

/** How long callers have waited, by name and time, and which wait now. */
export class WaitTimesView implements View<ShownWaitTimes> {
  readonly #body = h("tbody", { role: "rowgroup" });
  readonly #table: HTMLElement;
  readonly #note = h("p", { class: "summary" });
  readonly #key = h("ul", { class: "key", "aria-label": "Colours: how long 95 of 100 calls waited at most" });
  readonly #empty = h("div");
  readonly #rows = new Map<string, Row>();
  #shown = "";

  constructor() {
    const titles = ["Lock", "Waiting now", "The last 15 minutes", "Waits", "p95", "Lost"];
    const caption = "Which processes wait now, and how long callers of observed processes waited.";
    this.#table = table(
      "wait-times",
      caption,
      titles.map((text) => head({}, text)),
      this.#body,
    );
  }

  begin(view: Element): void {
    const key = LEVELS.map(([from, level], i) => {
      const to = LEVELS[i - 1]?.[0];
      const text = to === undefined ? `over ${time(from)}` : `to ${time(to)}`;
      return h("li", {}, h("span", { class: `cell ${level}` }), text);
    });
    this.#key.replaceChildren(...key.reverse());
    view.replaceChildren(h("div", { class: "tools" }, this.#note, this.#key), this.#table, this.#empty);
  }

  show({ waitTimes, processes, trouble, untold, age }: ShownWaitTimes): void {
    const shown = JSON.stringify([waitTimes, processes, trouble === null, untold]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#table.hidden = waitTimes.length === 0;
    this.#key.hidden = this.#table.hidden;
    const [first] = waitTimes;
    const isLong = levelOf(first?.longest ?? null) !== "fine";
    const order = isLong ? ", long waits in progress first" : first ? ", most waits and losses first" : "";
    const reported = `Reported by ${many(processes ?? 0, "process", "processes")}${order}`;
    const told = processes ? reported : first ? "Only waits in progress are known" : "";
    this.#note.textContent = [told, visible(untold ?? "")].filter((one) => one !== "").join(". ");
    const most = waitTimes.reduce((sum, { waits }) => Math.max(sum, ...waits), 1);
    const show = (waits: ShownWaits): HTMLElement => {
      const row = this.#rows.get(waits.name) ?? new Row(waits.name);
      this.#rows.set(waits.name, row);
      row.show(waits, most, age);
      return row.element;
    };
    arrange(this.#body, each(waitTimes, show, "tr"));
    for (const [name, row] of this.#rows) if (!row.element.isConnected) this.#rows.delete(name);
    const isKnown = trouble !== null || (waitTimes.length > 0 && processes);
    this.#empty.replaceChildren(...(isKnown ? [] : [processes === null ? UNASKED() : QUIET(processes)]));
  }
}

const UNASKED = (): HTMLElement =>
  nothing(
    "Nothing is observed.",
    "The page was created without a connection to read from. Give it one: ",
    h("code", {}, "createLockUI({ locks, redis })"),
    ".",
  );

const QUIET = (processes: number): HTMLElement =>
  processes > 0
    ? nothing(
        "No caller has waited.",
        "In the last 15 minutes no caller of an observed process has waited for a lock.",
      )
    : nothing(
        "No process is being observed.",
        "Turn it on in each process: ",
        h("code", {}, 'import { observe } from "holdfast/ui"; observe(locks, redis);'),
        " More is in docs/page.md of the package, section “Wait times”.",
      );

class Row {
  readonly element: HTMLElement;
  readonly #link = h("a", { class: "name" });
  readonly #count = h("span", { class: "waiting-now" });
  readonly #longest = h("span", { class: "wait" });
  readonly #upTo = h("span", {}, ", up to ", this.#longest);
  readonly #now = cell("now time", this.#count, this.#upTo);
  readonly #strip = cell("strip");
  readonly #waits = cell("waits time");
  readonly #p95 = cell("p95 time");
  readonly #lost = cell("lost time");
  #shown = "";

  constructor(name: string) {
    this.#link.title = visible(name);
    say(this.#link, visible(name));
    this.element = h(
      "tr",
      { role: "row" },
      cell("lock", this.#link),
      this.#now,
      this.#strip,
      this.#waits,
      this.#p95,
      this.#lost,
    );
  }

  show(one: ShownWaits, most: number, age: number | null): void {
    const { kind, name, waitingProcesses, longest, waits, p95, losses } = one;
    this.#link.setAttribute("href", linkTo({ kind, name }));
    say(this.#count, waitingProcesses > 0 ? number(waitingProcesses) : "–");
    grow(this.#longest, longest, age);
    this.#upTo.hidden = longest === null;
    this.element.classList.toggle("waited", waitingProcesses > 0);
    this.element.classList.toggle(
      "ended",
      waits.some((count) => count > 0),
    );
    this.element.dataset.level = levelOf(longest);
    const shown = JSON.stringify([waits, p95, losses, most]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const worst = p95.reduce<number>((sum, ms) => Math.max(sum, ms ?? 0), 0);
    const total = waits.reduce((sum, count) => sum + count, 0);
    this.#strip.replaceChildren(strip(waits, p95, most));
    say(this.#waits, number(total));
    say(this.#p95, total > 0 ? time(worst) : "–");
    say(this.#lost, losses > 0 ? number(losses) : "–");
    this.#lost.classList.toggle("bad", losses > 0);
  }
}

/** A column for each quarter of a minute: its height shows how many waits, its colour how long. */
function strip(waits: readonly number[], p95: readonly (number | null)[], most: number): SVGElement {
  const bars = waits.map((count, i) => {
    if (count === 0) return null;
    const ms = p95[i] ?? 0;
    const level = LEVELS.find(([from]) => ms >= from)?.[1] ?? "w1";
    const height = 4 + 24 * Math.sqrt(count / most);
    const place = {
      x: String(i * 4),
      y: String(28 - height),
      width: "3.2",
      height: String(height),
      rx: "0.8",
    };
    const minutes = time((STEPS - 1 - i) * 15_000);
    const title = svg("title", {}, `${number(count)} waited, 95 of 100 up to ${time(ms)}, ${minutes} ago`);
    return svg("rect", { ...place, class: level }, title);
  });
  const label = `Waits in 15 minutes, ${waits.reduce((sum, count) => sum + count, 0)} in all`;
  const ground = svg("rect", { class: "ground", x: "0", y: "27.4", width: "240", height: "0.6" });
  return svg(
    "svg",
    { viewBox: "0 0 240 28", preserveAspectRatio: "none", role: "img", "aria-label": label },
    ground,
    ...bars,
  );
}

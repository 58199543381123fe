import type { ShownHeat, ShownHeats } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { h, svg } from "./dom.ts";
import { many, number, time } from "./format.ts";
import { each, nothing } from "./parts.ts";
import type { View } from "./view.ts";

const STEPS = 60;
/** ms from which a wait counts as long, by class. */
const LEVELS: readonly (readonly [number, string])[] = [
  [10_000, "h5"],
  [2_000, "h4"],
  [500, "h3"],
  [100, "h2"],
  [0, "h1"],
];

/** How long callers have waited, by name and time. */
export class HeatView implements View<ShownHeats> {
  readonly #body = h("tbody");
  readonly #table: HTMLElement;
  readonly #note = h("p", { class: "summary" });
  readonly #key = h("ul", { class: "key", "aria-label": "95 of 100 calls waited" });
  readonly #empty = h("div");
  #shown = "";

  constructor() {
    const head = ["Lock", "The last 15 minutes", "Waits", "p95", "Lost"];
    this.#table = h(
      "table",
      { class: "heat" },
      h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
      this.#body,
    );
  }

  begin(view: Element): void {
    const key = LEVELS.map(([from, level], i) => {
      const to = LEVELS[i - 1]?.[0];
      return h(
        "li",
        {},
        h("span", { class: `cell ${level}` }),
        to === undefined ? `over ${time(from)}` : `to ${time(to)}`,
      );
    });
    this.#key.replaceChildren(...key.reverse());
    view.replaceChildren(h("div", { class: "tools" }, this.#note, this.#key), this.#table, this.#empty);
  }

  show({ heats, processes, trouble, untold }: ShownHeats): void {
    const shown = JSON.stringify([heats, processes, trouble === null, untold]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const some = heats ?? [];
    this.#table.hidden = some.length === 0;
    this.#key.hidden = this.#table.hidden;
    const told = processes > 0 ? `Told by ${many(processes, "process", "processes")}` : "";
    this.#note.textContent = [told, visible(untold ?? "")].filter((one) => one !== "").join(". ");
    const most = Math.max(1, ...some.flatMap(({ waits }) => waits));
    this.#body.replaceChildren(...each(some, (heat) => row(heat, most), "tr"));
    if (trouble !== null || some.length > 0) this.#empty.replaceChildren();
    else this.#empty.replaceChildren(heats === null ? UNASKED() : QUIET(processes));
  }
}

const UNASKED = (): HTMLElement =>
  nothing(
    "Nothing is observed.",
    "The page was made without a connection to read from: ",
    h("code", {}, "createLockUI({ locks, redis })"),
    ".",
  );

const QUIET = (processes: number): HTMLElement =>
  processes > 0
    ? nothing(
        "Nobody has waited.",
        "In the last 15 minutes no caller of an observed process has waited for a lock.",
      )
    : nothing(
        "No process is observed.",
        "A process asks for it: ",
        h("code", {}, 'import { observe } from "holdfast/ui"; observe(locks, redis);'),
      );

function row({ name, waits, p95, losses }: ShownHeat, most: number): HTMLElement {
  const worst = p95.reduce<number>((sum, ms) => Math.max(sum, ms ?? 0), 0);
  const total = waits.reduce((sum, count) => sum + count, 0);
  return h(
    "tr",
    {},
    h(
      "td",
      { class: "lock" },
      h("a", { class: "name", href: `#/lock/lock/${encodeURIComponent(name)}` }, visible(name)),
    ),
    h("td", { class: "strip" }, strip(waits, p95, most)),
    h("td", { class: "time", "data-is": "waits" }, number(total)),
    h("td", { class: "time", "data-is": "p95" }, total > 0 ? time(worst) : "–"),
    h(
      "td",
      { class: losses > 0 ? "time bad" : "time", "data-is": "lost" },
      losses > 0 ? number(losses) : "–",
    ),
  );
}

/** A column for each quarter of a minute: as high as there were waits, and as hot as they were long. */
function strip(waits: readonly number[], p95: readonly (number | null)[], most: number): SVGElement {
  const bars = waits.map((count, i) => {
    if (count === 0) return null;
    const ms = p95[i] ?? 0;
    const level = LEVELS.find(([from]) => ms >= from)?.[1] ?? "h1";
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

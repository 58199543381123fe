import type { Shown } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { Blocked } from "./blocked.ts";
import { showDemo } from "./demo.ts";
import { at, say } from "./dom.ts";
import { duration, linkToNow, many, number, size } from "./format.ts";
import { listenToKeys } from "./keys.ts";
import { One } from "./lock.ts";
import { Now } from "./now.ts";
import { follow } from "./source.ts";
import { standStill, startTicking } from "./ticking.ts";
import { admit, judge, SLOW, STALE } from "./verdict.ts";
import type { View } from "./view.ts";
import { WaitTimesView } from "./wait-times.ts";

const [main, status, said, alarm] = [at("view"), at("status"), at("said"), at("alarm")];
const server = at("server");

/** Where looks take long, data is late so many ms after the next look was due. */
const LATE_AFTER_DUE = 4_000;

/** Of the view of all locks, which has them in its address. */
const FILTERS: ReadonlySet<string> = new Set(["search", "only", "sort"]);
let filters = new URLSearchParams();
let stop = (): void => {};
/** The view that is open. */
let current: unknown = null;
/**
 * When Redis answered last, by the clock of this browser, when the next answer is due, and what it
 * said; null: not yet.
 */
let last: { readonly at: number; readonly due: number; readonly locks: string } | null = null;
/** "away": nothing newer comes, for a reason that is shown. "late": the reason is not known yet. */
let state: "new" | "live" | "late" | "away" = "new";
const opened = performance.now();

/** What follows the "#": a view, and for a lock its kind and name. */
function place(): { readonly view: string; readonly kind: string; readonly name: string } {
  const [, view = "", kind = "", name = ""] = location.hash.replace(/\?.*/, "").split("/");
  try {
    if (["blocked", "wait-times", "lock"].includes(view))
      return { view, kind, name: decodeURIComponent(name) };
  } catch {}
  return { view: "now", kind: "", name: "" };
}

function open(): void {
  const { view: wanted, kind, name } = place();
  const query = new URLSearchParams(wanted === "lock" ? { view: wanted, kind, name } : { view: wanted });
  if (wanted === "now") {
    const given = new URLSearchParams(/\?(.*)/.exec(location.hash)?.[1]);
    filters = new URLSearchParams([...given].filter(([name, value]) => FILTERS.has(name) && value !== ""));
  }
  const view = viewOf(wanted, kind, name) as View<Shown>;
  current = view;
  view.begin(main);
  document.title = wanted === "lock" ? `${visible(name)} · Locks` : "Locks";
  for (const link of document.querySelectorAll("nav a"))
    if (link.getAttribute("data-view") === wanted) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  watch(query, view);
}

function watch(query: URLSearchParams, view: View<Shown>): void {
  if (query.get("view") === "now") {
    for (const [filter, value] of filters) query.set(filter, value);
    document.querySelector("nav [data-view=now]")?.setAttribute("href", linkToNow(filters));
  }
  stop();
  stop = follow(
    query,
    (seen) => {
      if (seen.view !== query.get("view")) return;
      hear(seen);
      showDemo(seen.demo);
      view.show(seen);
    },
    (why) => away("No new data.", why),
  );
}

function viewOf(wanted: string, kind: string, name: string): unknown {
  if (wanted === "blocked") return new Blocked();
  if (wanted === "wait-times") return new WaitTimesView();
  if (wanted === "lock")
    return new One({ kind, name } as ConstructorParameters<typeof One>[0], linkToNow(filters));
  const now: Now = new Now(filters, () => {
    // RACE: a search counts 200 ms after it was typed. If another view was opened meanwhile, the
    // address would be that of this one again, and the other one would be shown nothing any more.
    if (current !== now) return;
    history.replaceState(null, "", linkToNow(filters));
    watch(new URLSearchParams({ view: "now" }), now as View<Shown>);
  });
  return now;
}

/** Before it is shown: times stand still where this is old. */
function hear(seen: Shown): void {
  if (seen.age !== null) {
    const locks = seen.isPartial ? `Reading: ${many(seen.total, "lock")} so far` : many(seen.total, "lock");
    last = { at: performance.now() - seen.age, due: seen.due, locks };
  }
  if (seen.trouble !== null) {
    away("No data from Redis:", seen.trouble);
    return;
  }
  turn("live");
  showServer(seen.server);
  judge(seen);
  // Where none are looked for, what was known before stays.
  if (seen.deadlocks !== null || seen.unread !== null) {
    const found = seen.deadlocks ?? 0;
    alarm.hidden = found === 0;
    say(alarm, number(found));
    alarm.title = many(found, "deadlock");
  }
}

/** How Redis answers: what is slow or nearly full begins here, before it is trouble. */
function showServer(seen: Shown["server"]): void {
  server.hidden = seen === null;
  if (!seen) return;
  const { roundTrip, usedMemory: used, maxMemory: limit } = seen;
  const memory =
    used === null ? "" : limit === null ? ` · ${size(used)}` : ` · ${size(used)} of ${size(limit)}`;
  say(server, ` · Redis ${duration(roundTrip)}${memory}`);
  server.title = `Redis answered after ${duration(roundTrip)}${used === null ? "" : `, and uses ${size(used)} of memory${limit === null ? ", without a limit" : `, of ${size(limit)} at most`}`}.`;
  server.dataset.level = roundTrip >= SLOW ? "long" : "fine";
}

/** What is shown is what Redis said last, and greyed where that is not what it says now. */
function turn(next: typeof state): void {
  state = next;
  status.dataset.state = state;
  // What it said last of itself is not how it is now.
  if (state !== "live") server.hidden = true;
  document.body.classList.toggle("away", state === "late" || state === "away");
  standStill(state === "live" || last === null ? null : last.at);
  tell();
}

/** How old what is shown is. */
function tell(): void {
  const passed = performance.now() - (last?.at ?? opened);
  const isLate = passed > Math.max(STALE, (last?.due ?? 0) + LATE_AFTER_DUE);
  const s = `${Math.round(passed / 1_000)} s`;
  if (isLate && (state === "live" || state === "new")) {
    admit(last === null ? "No answer yet." : "No new data: what you see is old.", "");
    turn("late");
  } else if (state === "late" || state === "away") say(said, `No answer for ${s}`);
  else if (last === null) say(said, "Connecting …");
  else say(said, `${last.locks} · ${passed < STALE ? "" : "stale, "}updated ${s} ago`);
}

function away(title: string, why: string): void {
  const sentence = /[.!?]\s*$/.test(why) ? why.trim() : `${why}.`;
  admit(title, last === null ? sentence : `${sentence} What you see is the last answer.`);
  turn("away");
}

addEventListener("hashchange", () => {
  // The link that skips the head leads to the view, and to no other one.
  if (location.hash !== "#view") open();
});
listenToKeys();
startTicking(tell);
open();

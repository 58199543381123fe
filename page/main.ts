import type { Shown } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { Blocked } from "./blocked.ts";
import { say } from "./dom.ts";
import { many, number } from "./format.ts";
import { HeatView } from "./heat.ts";
import { listenToKeys } from "./keys.ts";
import { One } from "./lock.ts";
import { Now } from "./now.ts";
import { follow } from "./source.ts";
import { standStill, startTicking } from "./ticking.ts";
import type { View } from "./view.ts";

const at = (id: string): HTMLElement => {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element;
};

const [main, status, said, trouble] = [at("view"), at("status"), at("said"), at("trouble")];
const alarm = at("alarm");

/**
 * ms without an answer of Redis after which the page says so; where looks take long, so many after
 * the next one was due.
 */
const LATE = 6_000;
const LATE_AFTER_DUE = 4_000;

let search = "";
let stop = (): void => {};
/**
 * When Redis answered last, by the clock of this browser, when the next answer is due, and what it
 * said; null: not yet.
 */
let last: { readonly at: number; readonly due: number; readonly locks: string } | null = null;
/** "away": why nothing newer comes is told. "late": that is not known yet. */
let state: "new" | "live" | "late" | "away" = "new";
const opened = performance.now();

/** What stands behind the "#": a view, and for a lock its kind and name. */
function place(): { readonly view: string; readonly kind: string; readonly name: string } {
  const [, view = "now", kind = "", name = ""] = location.hash.split("/");
  try {
    return { view: view || "now", kind, name: decodeURIComponent(name) };
  } catch {
    return { view: "now", kind: "", name: "" };
  }
}

function open(): void {
  const { view: wanted, kind, name } = place();
  const query = new URLSearchParams(wanted === "lock" ? { view: wanted, kind, name } : { view: wanted });
  const view = viewOf(wanted, kind, name) as View<Shown>;
  view.begin(main);
  document.title = wanted === "lock" ? `${visible(name)} · Locks` : "Locks";
  for (const link of document.querySelectorAll("nav a"))
    if (link.getAttribute("data-view") === wanted) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  watch(query, view);
}

function watch(query: URLSearchParams, view: View<Shown>): void {
  if (search !== "" && query.get("view") === "now") query.set("search", search);
  stop();
  stop = follow(
    query,
    (seen) => {
      if (seen.view !== query.get("view")) return;
      hear(seen);
      view.show(seen);
    },
    (why) => {
      away(why);
      turn("away");
    },
  );
}

function viewOf(wanted: string, kind: string, name: string): unknown {
  if (wanted === "blocked") return new Blocked();
  if (wanted === "heat") return new HeatView();
  if (wanted === "lock") return new One({ kind, name } as ConstructorParameters<typeof One>[0]);
  const now: Now = new Now(search, (text) => {
    search = text.trim();
    watch(new URLSearchParams({ view: "now" }), now as View<Shown>);
  });
  return now;
}

/** Before it is shown: times stand still where this is old. */
function hear(seen: Shown): void {
  if (seen.age !== null) {
    const locks = seen.isPartial
      ? `Looking: ${many(seen.total, "lock")} so far`
      : `${many(seen.total, "lock")}, ${number(seen.waitedLocks)} waited for`;
    last = { at: performance.now() - seen.age, due: seen.due, locks };
  }
  if (seen.trouble !== null) {
    away(seen.trouble);
    turn("away");
    return;
  }
  trouble.hidden = true;
  turn("live");
  // Where none are looked for, what was known before stays.
  if (seen.deadlocks !== null || seen.unread !== null) {
    const found = seen.deadlocks ?? 0;
    alarm.hidden = found === 0;
    say(alarm, number(found));
    alarm.title = many(found, "deadlock");
  }
}

/** What is shown is what Redis said last, and greyed where that is not what it says now. */
function turn(next: typeof state): void {
  state = next;
  status.dataset.state = state;
  document.body.classList.toggle("away", state === "late" || state === "away");
  standStill(state === "live" || last === null ? null : last.at);
  tell();
}

/** How old what is shown is. */
function tell(): void {
  const passed = performance.now() - (last?.at ?? opened);
  const isLate = passed > Math.max(LATE, (last?.due ?? 0) + LATE_AFTER_DUE);
  if (isLate && (state === "live" || state === "new")) turn("late");
  const s = `${Math.round(passed / 1_000)} s`;
  if (state === "late" || state === "away") say(said, `No answer for ${s}`);
  else if (last === null) say(said, "Connecting …");
  else say(said, passed < LATE ? last.locks : `${last.locks} · ${s} ago`);
}

function away(why: string): void {
  const sentence = /[.!?]\s*$/.test(why) ? why.trim() : `${why}.`;
  say(trouble, last === null ? visible(sentence) : `${visible(sentence)} What you see is the last answer.`);
  trouble.hidden = false;
}

addEventListener("hashchange", () => {
  // The link that skips the head leads to the view, and to no other one.
  if (location.hash !== "#view") open();
});
listenToKeys();
startTicking(tell);
open();

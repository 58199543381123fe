import type { Shown } from "../src/ui/shown.ts";
import { visible } from "../src/util/visible.ts";
import { Blocked } from "./blocked.ts";
import { say } from "./dom.ts";
import { many, number } from "./format.ts";
import { HeatView } from "./heat.ts";
import { listenToKeys } from "./keys.ts";
import { One } from "./lock.ts";
import { Now } from "./now.ts";
import { follow } from "./source.ts";
import { startTicking, tick } from "./ticking.ts";
import type { View } from "./view.ts";

const at = (id: string): HTMLElement => {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element;
};

const [main, status, said, trouble] = [at("view"), at("status"), at("said"), at("trouble")];
const alarm = at("alarm");

let search = "";
let stop = (): void => {};

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
      view.show(seen);
      live(seen);
    },
    () => away("The server of this page does not answer. What you see is as it was."),
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

function live(seen: Shown): void {
  if (seen.trouble !== null) {
    away(`Redis does not answer, so what you see is as it was: ${visible(seen.trouble)}`);
    return;
  }
  trouble.hidden = true;
  document.body.classList.remove("away");
  status.dataset.state = "live";
  // Where none are looked for, what was known before stays.
  if (seen.deadlocks !== null || seen.unread !== null) {
    const found = seen.deadlocks ?? 0;
    alarm.hidden = found === 0;
    say(alarm, number(found));
    alarm.title = many(found, "deadlock");
  }
  const locks = seen.isPartial
    ? `Looking: ${many(seen.total, "lock")} so far`
    : `${many(seen.total, "lock")}, ${number(seen.waited)} waited for`;
  tick(said, seen.age, (passed) =>
    say(said, passed < 6_000 ? locks : `${locks} · ${Math.round(passed / 1_000)} s ago`),
  );
}

function away(why: string): void {
  say(trouble, why);
  trouble.hidden = false;
  document.body.classList.add("away");
  status.dataset.state = "away";
}

addEventListener("hashchange", () => {
  // The link that skips the head leads to the view, and to no other one.
  if (location.hash !== "#view") open();
});
listenToKeys();
startTicking();
open();

import type { ShownCircle } from "../src/tools/ui/shown.ts";
import { h } from "./dom.ts";
import { many } from "./format.ts";
import { lockLink, person } from "./parts.ts";
import { grow } from "./ticking.ts";

/** Callers that wait for each other, one below the other: the last one waits for the first. */
export function deadlock({ isSure, rejected, cycle }: ShownCircle, age: number | null): HTMLElement {
  return h(
    "li",
    { class: isSure ? "deadlock" : "deadlock possible" },
    h(
      "h2",
      {},
      isSure
        ? `Deadlock: ${many(cycle.length, "caller")} wait for each other`
        : `Perhaps a deadlock: ${many(cycle.length, "caller")} wait for each other`,
    ),
    h(
      "p",
      { class: "note" },
      !isSure
        ? "Other callers can end it by returning permits, or a writer by leaving."
        : rejected
          ? "The client of the caller that began to wait last ends its wait, and the others go on."
          : "It does not end by itself. The others go on when one of them gives its lock up, or when it is force-released.",
    ),
    h(
      "ol",
      { class: "round" },
      ...cycle.map(({ kind, name, holder, waitsFor, waitedFor }) =>
        h(
          "li",
          {},
          person(holder),
          h("span", {}, h("small", {}, "holds"), lockLink({ kind, name }), since(holder.heldFor, age)),
          h("span", {}, h("small", {}, "waits for"), lockLink(waitsFor), since(waitedFor, age)),
        ),
      ),
    ),
  );
}

function since(ms: number | null, age: number | null): HTMLElement | null {
  if (ms === null) return null;
  const ago = h("span", { class: "time" });
  grow(ago, ms, age);
  return h("small", {}, "for ", ago);
}

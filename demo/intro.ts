import type { Plan } from "./plans.ts";
import { SHORT_LEASE_MS } from "./run.ts";
import type { Strategy } from "./strategies.ts";

const HELD_UP = `until its lease of ${SHORT_LEASE_MS} ms has ended`;

/** What each strategy does, and what is done to it on purpose. */
const DOES: Record<Strategy, string> = {
  none: "No lock: each process reads the stock, charges the customer and writes the stock less one.",
  optimistic: "No lock: WATCH the stock, and run the sale again if another process has written it meanwhile.",
  "setnx-expire":
    "SETNX takes the lock and EXPIRE, a second command, limits its life. On purpose, one process is killed between the two.",
  "get-del": `SET NX PX takes the lock. To release it, GET checks the owner and DEL, a second command, deletes it. On purpose, one process is stopped between the two ${HELD_UP}.`,
  "no-owner": `SET NX PX takes the lock without an owner, and DEL releases whatever is there. On purpose, one process is stopped before its DEL ${HELD_UP}.`,
  spin: "A spin lock: a script takes the lock if it is free, and a caller tries again after 1, 2, 4 … 128 ms if not. Another script releases it, only for its owner.",
  spinLock:
    "Holdfast's spinLock: SET NX PX with an owner. One caller tries for its whole process, and local hand-offs serve the others.",
  redisson: "Redisson's fenced lock: an unlock wakes every waiting process, and one of them gets the lock.",
  "hand-off": "Holdfast's lock: waiters park, and an unlock hands the lock to the next one.",
  fair: "Holdfast's fairLock: the same hand-off, first come, first served across processes.",
  quorum: "Holdfast's quorum: a caller holds the lock when two of three independent servers have granted it.",
};

/** The heading of a run. */
export function titleOf({ strategy, stops, isFenced }: Plan): string {
  return `${strategy}${stops ? `, a process stopped${isFenced ? ", fenced" : ""}` : ""}`;
}

/** What is about to happen, in a sentence or two. */
export function introOf({ strategy, stops, isFenced }: Plan): string {
  if (!stops) return DOES[strategy];
  if (isFenced)
    return "The same stop, in a shop that refuses a write whose token is smaller than one that it has seen.";
  const until = strategy === "optimistic" ? "until others have sold" : `${HELD_UP} and others have sold`;
  return `The same, and on purpose one process is stopped (SIGSTOP) between reading and writing the stock, ${until}.`;
}

import type { LockEvents, RedisLike } from "../../index.ts";
import type { CommonClient } from "../../inside.ts";
import { ENTRIES, EVENTS, KEPT, NAMES, STREAM, stepOf, type Told } from "./observed.ts";

/**
 * ms from one entry to the next: a process writes no more often. And from what happens to the entry
 * that tells it, at least.
 */
const EVERY = 5_000;
const SOON = 1_000;

/**
 * Has a client tell the page what its callers wait for: for the views of heat and history. It
 * counts in memory, and writes one entry in 5 s at the most, into one stream of bounded length,
 * which lives for an hour. Nothing is sent for calls that did not wait.
 *
 * @param locks the client.
 * @param redis a connection to where the page reads; it may be that of the client. It needs the
 *   rights `+xadd +pexpire`, for `holdfast:observed`.
 * @returns how to stop it.
 * @example
 * const stop = observe(locks, redis);
 */
export function observe(
  locks: Pick<CommonClient, "on" | "off" | "id">,
  redis: Pick<RedisLike, "callBuffer">,
): () => void {
  let waits = new Map<string, Map<number, number>>();
  /** Calls that have to wait, each with its lock. */
  const waiting = new Set<string>();
  let events: [Told["events"][number][0], string, number, number, string | null][] = [];
  let timer: NodeJS.Timeout | undefined;
  let last = Number.NEGATIVE_INFINITY;

  const tell = (): void => {
    timer = undefined;
    const now = performance.now();
    last = now;
    const told: Told = {
      client: locks.id,
      waits: Object.fromEntries([...waits].map(([name, steps]) => [name, Object.fromEntries(steps)])),
      events: events.map(([what, name, at, after, why]) => [what, name, Math.round(now - at), after, why]),
    };
    waits = new Map();
    events = [];
    // Nobody misses an entry that does not arrive: the locks themselves do not depend on it.
    redis
      .callBuffer("XADD", STREAM, "MAXLEN", "~", ENTRIES, "*", "told", JSON.stringify(told))
      .catch(() => {});
    redis.callBuffer("PEXPIRE", STREAM, KEPT).catch(() => {});
  };
  const happened = (what: "acquire" | "giveup" | "lost", name: string, after: number, why: string | null) => {
    if (events.push([what, name, performance.now(), Math.round(after), why]) > EVENTS) events.shift();
    timer ??= setTimeout(tell, Math.max(SOON, last + EVERY - performance.now())).unref();
  };
  const waited = (name: string, ms: number): void => {
    const steps = waits.get(name) ?? new Map<number, number>();
    if (waits.size >= NAMES && !waits.has(name)) return;
    waits.set(name, steps.set(stepOf(ms), (steps.get(stepOf(ms)) ?? 0) + 1));
  };

  const begins: LockEvents["wait"] = ({ call, name }) => void waiting.add(`${call} ${name}`);
  const acquired: LockEvents["acquire"] = ({ call, name, waitedFor: ms }) => {
    if (!waiting.delete(`${call} ${name}`)) return;
    waited(name, ms);
    happened("acquire", name, ms, null);
  };
  const gaveUp: LockEvents["giveup"] = ({ call, name, waitedFor: ms, why }) => {
    if (!waiting.delete(`${call} ${name}`)) return;
    waited(name, ms);
    happened("giveup", name, ms, why);
  };
  const lost: LockEvents["lost"] = ({ name, heldFor, error }) =>
    happened("lost", name, heldFor, error.reason);
  locks.on("wait", begins).on("acquire", acquired).on("giveup", gaveUp).on("lost", lost);
  return () => {
    locks.off("wait", begins).off("acquire", acquired).off("giveup", gaveUp).off("lost", lost);
    clearTimeout(timer);
  };
}

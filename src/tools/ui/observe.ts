import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClusterLike, LockError, LockEvents, NodeRedisLike, RedisLike } from "../../index.ts";
import { type CommonClient, linkTo, noConnection, prefixOf } from "../../inside.ts";
import { ENTRIES, EVENTS, KEPT, LONGEST_DEAF, NAMES, STREAM, stepOf, type Told } from "./observed.ts";

/** The least ms between two entries of a process, and between an event and its entry. */
const EVERY = 5_000;
const SOON = 1_000;

/**
 * Makes a client report the waits and losses of its callers to the page: for the wait times and the
 * history. It counts in memory, and writes at most one entry per 5 s into one stream of bounded
 * length, which lives for an hour. Calls that did not wait send nothing.
 *
 * @param locks the client.
 * @param redis a connection to the Redis that the page reads; it may be the client's own. It needs
 *   the rights `+xadd +pexpire`, for `holdfast:observed`.
 * @returns a function that stops the reports.
 * @throws TypeError if `redis` is no connection.
 * @example
 * const stop = observe(locks, redis);
 */
export function observe(
  locks: Pick<CommonClient, "on" | "off" | "id">,
  redis: RedisLike | ClusterLike | NodeRedisLike,
): () => void {
  const link = linkTo(redis);
  if (!link) throw new TypeError(`Cannot observe: redis ${noConnection(redis)}`);
  const stream = prefixOf(locks) + STREAM;
  let waits = new Map<string, Map<number, number>>();
  /** Calls that wait, each with its lock. */
  const waiting = new Set<string>();
  let events: [Told["events"][number][0], string, number, number, string | null][] = [];
  let deaf: string | undefined;
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
      ...(deaf !== undefined && { deaf }),
    };
    waits = new Map();
    events = [];
    deaf = undefined;
    // An entry may be lost: no lock depends on it.
    link
      .commandOn(stream, ["XADD"], ["MAXLEN", "~", ENTRIES, "*", "told", JSON.stringify(told)])
      .catch(() => {});
    link.commandOn(stream, ["PEXPIRE"], [KEPT]).catch(() => {});
  };
  const soon = (): void => {
    timer ??= setTimeout(tell, Math.max(SOON, last + EVERY - performance.now())).unref();
  };
  const happened = (what: "acquire" | "giveup" | "lost", name: string, after: number, why: string | null) => {
    if (events.push([what, name, performance.now(), Math.round(after), why]) > EVENTS) events.shift();
    soon();
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
    happened("lost", name, heldFor, error.by === null ? error.reason : `${error.reason} by ${error.by}`);
  // By the channel: a listener would end the process warnings.
  const failed = (message: unknown): void => {
    const { client, error } = message as { client: string; error: LockError };
    if (client !== locks.id || error.code !== "NO_MESSAGES") return;
    deaf = error.message.slice(0, LONGEST_DEAF);
    soon();
  };
  subscribe("holdfast:error", failed);
  locks.on("wait", begins).on("acquire", acquired).on("giveup", gaveUp).on("lost", lost);
  return () => {
    locks.off("wait", begins).off("acquire", acquired).off("giveup", gaveUp).off("lost", lost);
    unsubscribe("holdfast:error", failed);
    clearTimeout(timer);
  };
}

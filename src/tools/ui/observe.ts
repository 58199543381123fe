import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClusterLike, LockError, NodeRedisLike, RedisLike } from "../../index.ts";
import { type CommonClient, linkTo, noConnection, prefixOf } from "../../inside.ts";
import { quote } from "../../util/quote.ts";
import { CallSites } from "./call-sites.ts";
import { ENTRIES, KEPT, STREAM } from "./observed.ts";
import { Reporter } from "./reporter.ts";

/** The options of `observe`. */
export interface ObserveOptions {
  /**
   * Also report the line of the application that called, for the page of the lock. Each call then
   * takes a stack. A bundle that contains this package has no such lines. Default: false.
   */
  readonly callSites?: boolean | undefined;
}

/**
 * Makes a client report its calls to the page: for the wait times, and for the timeline of each
 * lock. It counts in memory, and writes at most one entry per 5 s into one stream of bounded length,
 * which lives for an hour. A call that did not wait, and had the lock for less than 1 s, is not
 * reported.
 *
 * @param locks the client.
 * @param redis a connection to the Redis that the page reads; it may be the client's own. It needs
 *   the rights `+xadd +pexpire`, for `holdfast:observed`.
 * @param options.callSites whether the line that called is reported too. Default: false.
 * @returns a function that reports what is left, and stops. Call it after the client's `close()`, which
 *   ends its holds, and before the connection ends.
 * @throws TypeError if `redis` is no connection, or for bad options.
 * @example
 * const stop = observe(locks, redis);
 */
export function observe(
  locks: Pick<CommonClient, "on" | "off" | "id">,
  redis: RedisLike | ClusterLike | NodeRedisLike,
  options: ObserveOptions = {},
): () => void {
  const link = linkTo(redis);
  if (!link) throw new TypeError(`Cannot observe: redis ${noConnection(redis)}`);
  const { callSites } = checkOptions(options);
  const stream = prefixOf(locks) + STREAM;
  const sites = callSites ? new CallSites(locks.id) : null;
  const reporter = new Reporter(locks.id, sites, (told) => {
    // An entry may be lost: no lock depends on it.
    link
      .commandOn(stream, ["XADD"], ["MAXLEN", "~", ENTRIES, "*", "told", JSON.stringify(told)])
      .catch(() => {});
    link.commandOn(stream, ["PEXPIRE"], [KEPT]).catch(() => {});
  });
  // By the channel: a listener would end the process warnings.
  const failed = (message: unknown): void => {
    const { client, error } = message as { client: string; error: LockError };
    if (client === locks.id && error.code === "NO_MESSAGES") reporter.deaf(error.message);
  };
  const { wait, acquire, giveup, release, renew, lost } = reporter.listeners;
  locks.on("wait", wait).on("acquire", acquire).on("giveup", giveup);
  locks.on("release", release).on("renew", renew).on("lost", lost);
  subscribe("holdfast:error", failed);
  return () => {
    locks.off("wait", wait).off("acquire", acquire).off("giveup", giveup);
    locks.off("release", release).off("renew", renew).off("lost", lost);
    unsubscribe("holdfast:error", failed);
    reporter.close();
    sites?.close();
  };
}

function checkOptions(options: ObserveOptions): ObserveOptions {
  const fail = (what: string): never => {
    throw new TypeError(`Cannot observe: ${what}`);
  };
  if (typeof options !== "object" || options === null) return fail("options must be an object");
  const unknown = Object.keys(options).find((name) => name !== "callSites");
  if (unknown !== undefined) fail(`unknown option ${quote(unknown)}; known is callSites`);
  if (options.callSites !== undefined && typeof options.callSites !== "boolean")
    fail("callSites must be true or false");
  return options;
}

import {
  CLOCK_DRIFT,
  CLOCK_GRAIN,
  LEASE_MIN,
  LEASE_TIME,
  LOCAL_PASSES,
  LONGEST_LEASE,
  NODE_TIMEOUT,
  PASSES_MAX,
  REPLY_TIMEOUT,
  RETRY_DELAY,
} from "../defaults.ts";
import type { LockClientOptions } from "../options.ts";
import { checkConnection, checkCount, checkFlag, checkObject, checkTime, refuse } from "../validate.ts";

/** How a client of several masters works. Times are whole milliseconds. */
export interface QuorumClientOptions
  extends Pick<LockClientOptions, "leaseTime" | "replyTimeout" | "localPasses" | "connection" | "scopes"> {
  /**
   * How long a node may leave a vote unanswered. It costs nothing while the others can decide without it. Default: 400,
   * and never longer than the lease. A node that is still being connected to for the first time gets `replyTimeout`.
   */
  nodeTimeout?: number | undefined;
  /** After a split vote the next try comes after a random time up to this, and 50 more. Default: 150. */
  retryDelay?: number | undefined;
  /**
   * Longer leases and extensions are refused. It must be the same in every client of these nodes, because `restartDelay`
   * follows from it. Default: 60 000.
   */
  longestLease?: number | undefined;
  /**
   * A node whose process is younger does not vote: it may have forgotten locks that are still held. 0: every node votes at
   * once, which is right only where no node ever forgets (`appendfsync always`) or restarts are delayed by other means.
   * Else it must outlast `longestLease`. Default: `longestLease`, 1 % and 2 ms.
   */
  restartDelay?: number | undefined;
}

/** The same, checked and complete. */
export type QuorumSettings = Required<{
  [K in keyof QuorumClientOptions]: NonNullable<QuorumClientOptions[K]>;
}>;

export function checkQuorumOptions(options: unknown): QuorumSettings {
  const what = "Cannot create a lock client";
  const given = checkObject(what, options, [
    "leaseTime",
    "replyTimeout",
    "localPasses",
    "connection",
    "scopes",
    "nodeTimeout",
    "retryDelay",
    "longestLease",
    "restartDelay",
  ]) as QuorumClientOptions;
  const { longestLease = LONGEST_LEASE, localPasses, connection } = given;
  checkTime(what, "longestLease", longestLease, LEASE_MIN, false);
  // Known before it is checked: a leaseTime that is left out must fit too.
  const { leaseTime = Math.min(LEASE_TIME, longestLease), replyTimeout = REPLY_TIMEOUT } = given;
  checkTime(what, "leaseTime", leaseTime, LEASE_MIN, false, longestLease);
  checkTime(what, "replyTimeout", replyTimeout, LEASE_MIN, false);
  checkCount(what, "localPasses", localPasses, PASSES_MAX);
  checkConnection(what, connection);
  checkFlag(what, "scopes", given.scopes);
  const { nodeTimeout = NODE_TIMEOUT, retryDelay = RETRY_DELAY } = given;
  checkTime(what, "nodeTimeout", nodeTimeout, LEASE_MIN, false);
  checkTime(what, "retryDelay", retryDelay, LEASE_MIN, false);
  const outlasting = Math.ceil(longestLease * (1 + CLOCK_DRIFT)) + CLOCK_GRAIN;
  const { restartDelay = outlasting } = given;
  checkTime(what, "restartDelay", given.restartDelay, 0, false);
  if (restartDelay > 0 && restartDelay < outlasting)
    throw refuse(
      RangeError,
      what,
      "restartDelay",
      `0, or at least ${outlasting} (longestLease and the drift)`,
      restartDelay,
    );
  return {
    leaseTime,
    replyTimeout,
    localPasses: localPasses ?? LOCAL_PASSES,
    connection: connection ?? "shared",
    scopes: given.scopes ?? true,
    nodeTimeout,
    retryDelay,
    longestLease,
    restartDelay,
  };
}

import { CLIENT, type LockClientOptions, leaseUpTo, neverKept } from "../api/options.ts";
import { anything, type Checked, checkOptions, refuse, time } from "../api/validate.ts";
import {
  CLOCK_DRIFT,
  CLOCK_GRAIN,
  LEASE_MIN,
  LEASE_TIME,
  LOCAL_HANDOFFS,
  LONGEST_LEASE,
  NODE_TIMEOUT,
  RETRY_DELAY,
} from "../defaults.ts";

/** How a client of several masters works. Times are whole milliseconds. */
export interface QuorumClientOptions
  extends Pick<
    LockClientOptions,
    "label" | "prefix" | "leaseTime" | "replyTimeout" | "localHandoffs" | "connection" | "reentrant"
  > {
  /**
   * How long a node may leave a vote unanswered. It costs nothing while the others can decide
   * without it. Default: 400, and never longer than the lease. A node whose first connection is
   * being made gets `replyTimeout`.
   */
  nodeTimeout?: number | undefined;
  /**
   * After a split vote, the next try follows after a random time of up to this plus 50. Default:
   * 150.
   */
  retryDelay?: number | undefined;
  /**
   * Longer leases and extensions are refused. Use the same value in every client of these nodes,
   * because `restartDelay` follows from it. Default: 60 000.
   */
  longestLease?: number | undefined;
  /**
   * A node whose process is younger does not vote: it may have lost locks that are still held. 0:
   * every node votes at once, which is right only if no node ever loses data (`appendfsync always`)
   * or restarts are delayed by other means. Otherwise it must outlast `longestLease`. Default:
   * `longestLease` plus 1 % and 2 ms.
   */
  restartDelay?: number | undefined;
}

const { label, prefix, replyTimeout, localHandoffs, connection, reentrant } = CLIENT;
const RULES = {
  leaseTime: anything as typeof CLIENT.leaseTime, // no longer than longestLease
  replyTimeout,
  localHandoffs: { ...localHandoffs, fallback: LOCAL_HANDOFFS },
  connection,
  reentrant,
  label,
  prefix,
  linger: neverKept("a lock of several masters is not cached"),
  nodeTimeout: time(LEASE_MIN, NODE_TIMEOUT),
  retryDelay: time(LEASE_MIN, RETRY_DELAY),
  longestLease: time(LEASE_MIN, LONGEST_LEASE),
  restartDelay: time(0, 0),
};

/** The same, checked and complete. */
export type QuorumSettings = Checked<typeof RULES>;

export function checkQuorumOptions(options: unknown): QuorumSettings {
  const what = "Cannot create a lock client";
  const { longestLease } = checkOptions(what, RULES, options);
  const outlasting = Math.ceil(longestLease * (1 + CLOCK_DRIFT)) + CLOCK_GRAIN;
  const settings = checkOptions(
    what,
    {
      ...RULES,
      leaseTime: { ...leaseUpTo(longestLease), fallback: Math.min(LEASE_TIME, longestLease) },
      restartDelay: time(0, outlasting),
    },
    options,
  );
  const { restartDelay } = settings;
  if (restartDelay === 0 || restartDelay >= outlasting) return settings;
  const wanted = `0, or at least ${outlasting} (longestLease and the drift)`;
  throw refuse(RangeError, what, "restartDelay", wanted, restartDelay);
}

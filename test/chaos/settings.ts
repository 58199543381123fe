import type { LockClientOptions } from "../../src/index.ts";
import type { QuorumClientOptions } from "../../src/quorum/index.ts";
import type { Driver as IoredisDriver } from "../support/servers/connection.ts";
import type { Dice } from "./dice.ts";

export type Driver = IoredisDriver | typeof NODE_REDIS;

/** Version 5 has no `keyPrefix`. */
export const NODE_REDIS = "node-redis 6";

const DRIVERS: Driver[] = ["ioredis 6, RESP3", "ioredis 6, RESP2", "ioredis 5", NODE_REDIS, NODE_REDIS];

/** No grant window is longer. */
export const LONGEST_WINDOW = 3_000;

/** How a worker's lock client works. Leases are short, so that much happens to them in a minute. */
export function clientOptions(dice: Dice): LockClientOptions {
  return {
    leaseTime: dice.pick([1_000, 2_000, 3_000]),
    replyTimeout: dice.pick([1_000, 3_000, 5_000]),
    grantWindow: dice.pick([2_500, LONGEST_WINDOW]),
    localHandoffs: dice.pick([0, 4, 16]),
    // No more than half of the grant window.
    linger: dice.pick([0, 300, 1_000, 1_000]),
    connection: dice.pick(["shared", "own"]),
  };
}

/** No lease is longer, nor an extension. */
export const LONGEST_LEASE = 3_500;

/** ms: what Redis gave is passed on inside a process for 25; the rest is for a busy machine. */
export const PASSED = 225;

/** The lease of a leader. A term may begin with a grant window, which is longer. */
export const TERM_LEASE = 1_500;

/**
 * ms after its start from which a node of a quorum votes for everybody: 1 % and 2 ms more; the
 * uptime is told in whole seconds.
 */
export const UNTIL_OLD = LONGEST_LEASE * 1.01 + 2 + 2_000;

/** The same for a client of several masters. A node that has restarted is soon old enough to vote again. */
export function quorumOptions(dice: Dice): QuorumClientOptions {
  return {
    leaseTime: dice.pick([1_000, 2_000, 3_000]),
    replyTimeout: dice.pick([1_000, 3_000, 5_000]),
    nodeTimeout: dice.pick([100, 400, 1_000]),
    retryDelay: dice.pick([50, 150]),
    localHandoffs: dice.pick([0, 4, 16]),
    connection: dice.pick(["shared", "own"]),
    longestLease: LONGEST_LEASE,
  };
}

/**
 * How fast a server's clock runs. The promise is for rates that differ by less than a hundredth;
 * what is left is for a process that starts late.
 */
export const clockRate = (dice: Dice): number => dice.pick([0.994, 1, 1.006]);

/** With which library it talks to Redis. */
export const driver = (dice: Dice): Driver => dice.pick(DRIVERS);

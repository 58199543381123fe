import type { LockClientOptions } from "../../src/index.ts";
import type { Driver } from "../support/topologies/connection.ts";
import type { Dice } from "./dice.ts";

const DRIVERS: Driver[] = ["ioredis 6, RESP3", "ioredis 6, RESP2", "ioredis 5"];

/** How a worker's lock client works. Leases are short, so that much happens to them in a minute. */
export function clientOptions(dice: Dice): LockClientOptions {
  return {
    leaseTime: dice.pick([1_000, 2_000, 3_000]),
    replyTimeout: dice.pick([1_000, 3_000, 5_000]),
    grantWindow: dice.pick([2_500, 3_000]),
    localPasses: dice.pick([0, 4, 16]),
    connection: dice.pick(["shared", "own"]),
  };
}

/** How it talks to Redis. */
export const driver = (dice: Dice): Driver => dice.pick(DRIVERS);

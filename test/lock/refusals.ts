import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { Party } from "../support/fixture.ts";
import type { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

export interface Refusal {
  /** The first word of what Redis says. */
  says: string;
  begin(redis: Redis): Promise<unknown>;
  end(redis: Redis): Promise<unknown>;
}

/** Why this server refuses writes. */
export const refusals = (stage: Stage): Refusal[] => [
  {
    says: "READONLY", // the primary was made a replica
    begin: (redis) => redis.replicaof("127.0.0.1", 1),
    end: (redis) => redis.replicaof("NO", "ONE"),
  },
  {
    says: "NOREPLICAS", // min-replicas-to-write, and there is none
    begin: (redis) => redis.config("SET", "min-replicas-to-write", "1"),
    end: (redis) => redis.config("SET", "min-replicas-to-write", "0"),
  },
  {
    says: "MISCONF", // the last snapshot failed
    async begin(redis) {
      await mkdir(join(stage.server.dir, "dump.rdb")); // no file can take the place of a folder
      await redis.config("SET", "save", "3600 1000000");
      await redis.call("BGSAVE");
      const hasFailed = /rdb_bgsave_in_progress:0.*rdb_last_bgsave_status:err/s;
      await until(async () => hasFailed.test(await redis.info("persistence")), {
        what: "a snapshot to fail",
      });
    },
    async end(redis) {
      await redis.config("SET", "save", "");
      await rm(join(stage.server.dir, "dump.rdb"), { recursive: true });
    },
  },
];

export const refusedWith = (says: string) => ({
  code: "LOCK_UNAVAILABLE",
  cause: { message: expect.stringContaining(says) },
});

/** A holder with a lease of so many ms, and a caller of another client that waits behind it. */
export async function heldAndWaitedFor(stage: Stage, leaseTime: number) {
  const { far, lock } = stage;
  const holder: Party = await stage.join({ client: { leaseTime } });
  const errors: unknown[] = [];
  holder.locks.on("error", (error) => errors.push(error));
  const lease = await holder.locks.lock(lock.name).lock();
  const waiting = far.locks.lock(lock.name).lock();
  await lock.queued(1);
  return { lease, waiting, errors };
}

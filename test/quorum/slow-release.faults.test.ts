import { describe, expect, it } from "vitest";
import { QuorumStage } from "../support/quorum-stage.ts";

// A body ended while its lock was surely held, and the release takes long. Nothing was lost: the
// work was protected to its end.

const LEASE = 2_500;
const REPLY_TIMEOUT = 3_000;

describe("a quorum lock", () => {
  const stage = new QuorumStage(3);

  it.for([1_000, LEASE + 100, REPLY_TIMEOUT + 500])(
    "whose masters are suspended for %d ms at the end of a body: success",
    async (stall) => {
      const { locks } = await stage.join({ leaseTime: LEASE, replyTimeout: REPLY_TIMEOUT });
      const lost: unknown[] = [];
      locks.on("lost", (event) => lost.push(event));
      const done = locks.lock(stage.name).withLock(async (lease) => {
        for (const node of [1, 2, 3]) stage.server(node).suspend();
        setTimeout(() => {
          for (const node of [1, 2, 3]) stage.server(node).resume();
        }, stall);
        return lease.held;
      });
      expect(await done).toBe(true);
      expect(lost).toEqual([]);
    },
  );
});

import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { CLAIM_AFTER } from "../../src/defaults.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { onNodeRedis } from "../support/carrier.ts";
import { freshName, type Party } from "../support/fixture.ts";
import { turnsUntilHeard } from "../support/heard.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A waiter whose subscriber connection stands, but does not count at the server that grants the
// lock: it is skipped, hears nothing that is not so, gets another connection, and has its turn.

const stage = new Stage();

describe("a subscriber that stays on a server which becomes a replica", () => {
  /** Two servers; `takeOver()` makes the second one the primary, loses no key and cuts no connection. */
  async function pair() {
    const first = await launchServer();
    const second = await launchServer({ args: ["--replicaof", "127.0.0.1", String(first.port)] });
    const [old, admin] = [new Redis(first.url), new Redis(second.url)];
    onTestFinished(async () => {
      for (const redis of [old, admin]) redis.disconnect();
      await Promise.all([first.stop(), second.stop()]);
    });
    const follows = (redis: Redis) => async () =>
      (await redis.info("replication")).includes("master_link_status:up");
    await until(follows(admin), { what: "the replica" });
    return {
      url: first.url,
      admin,
      takeOver: async (...parties: Party[]) => {
        await until(() => old.call("FAILOVER").catch(() => null), { what: "the replica to be in step" });
        await until(follows(old), { what: "the failover" });
        // What a load balancer does: commands, and later connections too, go to the new primary.
        for (const { redis } of parties) {
          redis.options.port = second.port;
          redis.disconnect(true);
          await until(async () => (await redis.role())[0] === "master");
        }
      },
    };
  }

  // A client of node-redis cannot be sent to another address.
  it.skipIf(onNodeRedis)(
    "receives no grant after it was skipped, so there is one holder at a time; then it is subscribed again",
    async ({ annotate }) => {
      const { url, admin, takeOver } = await pair();
      const [holder, behind, other] = [
        await stage.join({ url }),
        await stage.join({ url }),
        await stage.join({ url }),
      ];
      const name = freshName();
      const held = await holder.locks.lock(name).lock();
      let inside = 0;
      let most = 0;
      const visit = ({ locks }: Party) =>
        locks.lock(name).withLock(async (lease) => {
          most = Math.max(most, ++inside);
          await delay(3 * CLAIM_AFTER); // a grant that was none shows itself when it is claimed
          lease.assertHeld();
          inside--;
        });
      const first = visit(behind); // subscribed at what will be a replica
      const queued = (count: number) =>
        until(async () => (await admin.zcard(`holdfast:{${name}}:queue`)) === count);
      await queued(1);
      await takeOver(holder, behind, other);
      const second = visit(other); // subscribed at the new primary
      await queued(2);
      await held.unlock();
      await Promise.all([first, second]);
      expect(most).toBe(1);
      const waits = await turnsUntilHeard(other, behind, name);
      await annotate(`${waits} ms`);
      expect(waits.length).toBeLessThanOrEqual(4);
    },
    60_000,
  );
});

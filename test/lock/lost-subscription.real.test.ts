// On a real Redis; in virtual time: test/world/directed/{crowds,connection-failures}.test.ts.

import { describe, expect, it } from "vitest";
import { Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A waiter whose subscriber connection stands, but does not count at the server that grants the
// lock: it is skipped, hears nothing that is not so, gets another connection, and has its turn.

const stage = new Stage();

describe("a subscription that the server has dropped without the client's knowledge", () => {
  const drop = async (): Promise<void> => {
    stage.proxy.freeze("subscribers");
    await stage.far.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  };

  it("is replaced: its client gets its turn while others hand over to each other", async ({ annotate }) => {
    const { near, far, lock } = stage;
    await stage.warm(near);
    await drop();
    const rivals = [far, await stage.join(), await stage.join()];
    let isOver = false;
    const games = rivals.map(async ({ locks, redis }) => {
      while (!isOver) await locks.lock(lock.name).withLock(() => redis.ping());
    });
    await lock.queued(2);
    const [lease, waited] = await timed(near.locks.lock(lock.name).tryLock(15_000));
    isOver = true;
    await annotate(`its turn after ${waited} ms`);
    expect(lease?.held).toBe(true);
    await lease?.unlock();
    await Promise.all(games);
  }, 30_000);

  it("costs the others no window: the entry is skipped", async ({ annotate }) => {
    const { near, far, lock } = stage;
    await stage.warm(near);
    const held = await far.locks.lock(lock.name).lock();
    const skipped = near.locks.lock(lock.name).lock();
    await lock.queued(1);
    const other = await stage.join();
    const next = other.locks.lock(lock.name).lock();
    await lock.queued(2);
    await drop();
    // The other one's subscriber was cut as well: it is back before the lock is given away.
    await until(async () => (await far.redis.pubsub("NUMSUB", `holdfast:client:${other.locks.id}`))[1] === 1);
    await held.unlock();
    const [lease, waited] = await timed(next);
    await annotate(`${waited} ms`);
    expect(waited).toBeLessThan(1_000);
    await lease.unlock();
    await (await skipped).unlock();
  }, 30_000);
});

// On a real Redis; in virtual time: test/world/directed/subscribing.test.ts.

import { createServer } from "node:net";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createLockClient, type LockClient } from "../../src/index.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { until } from "../support/until.ts";

// Callers of a fair lock who come before their client hears anything: in order, and never worse off
// than by asking.

const parties = new Parties();
staysQuiet();
afterAll(parties.close);

describe("while the subscriber's connection hangs", () => {
  // Accepts connections and never says a word.
  const hole = createServer((socket) => socket.on("error", () => {}));
  let port: number;
  let redis: Redis;
  let locks: LockClient;

  class HangingDuplicates extends Redis {
    override duplicate(override?: object): Redis {
      return super.duplicate({ ...override, port });
    }
  }

  beforeAll(async () => {
    await new Promise<void>((resolve) => hole.listen(0, "127.0.0.1", resolve));
    port = (hole.address() as { port: number }).port;
    redis = new HangingDuplicates(testUrl());
    locks = createLockClient(redis, { replyTimeout: 2_000 });
    locks.on("error", () => {}); // NO_MESSAGES
  });
  afterAll(async () => {
    await locks.close({ grace: 0 });
    redis.disconnect();
    hole.close();
  });

  it("a free lock is acquired", async () => {
    const lock = locks.fairLock(freshName());
    const first = await lock.lock();
    const second = lock.lock();
    await first.unlock();
    await (await second).unlock();
  });

  it("all get their turns in the order of arrival, also when the connection is given up", async () => {
    const { locks: others } = await parties.join();
    // A client of its own: nobody has given up before.
    const patient = createLockClient(redis, { replyTimeout: 1_000 });
    patient.on("error", () => {}); // NO_MESSAGES
    onTestFinished(() => patient.close({ grace: 0 }));
    const name = freshName();
    const held = await others.fairLock(name).lock();
    const order: number[] = [];
    const waiting: Promise<void>[] = [];
    for (let i = 0; i < 4; i++) {
      waiting.push(patient.fairLock(name).withLock(() => void order.push(i)));
      // They come at different times, and each tries at times of its own.
      expect(await patient.fairLock(name).tryLock(110)).toBeNull();
    }
    await until(async () => (await others.lock(name).inspect()).waiters?.length === 4);
    await held.unlock();
    await Promise.all(waiting);
    expect(order).toEqual([...order.keys()]);
  }, 60_000);

  it("a caller that waits for a held lock reports the lock as held, or waits on, because Redis did answer", async () => {
    const { locks: others } = await parties.join();
    const name = freshName();
    const held = await others.fairLock(name).lock();
    const lock = locks.fairLock(name);
    const patient = lock.lock();
    expect(await Promise.all([lock.tryLock(300), lock.tryLock(300), lock.tryLock(1_500)])).toEqual([
      null,
      null,
      null,
    ]);
    await held.unlock();
    await (await patient).unlock();
  });
});

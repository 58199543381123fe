import { inspect } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { freshName } from "../support/fixture.ts";
import { Stage } from "../support/stage.ts";

// What nobody can guess, and messages are believed by.

const stage = new Stage();
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

describe("the random part of a hold's id", () => {
  it("appears nowhere: not in inspect(), errors, events or warnings", async () => {
    const { near, far, lock } = stage;
    const told: unknown[] = [];
    for (const event of ["wait", "acquire", "release", "lost", "error"] as const)
      near.locks.on(event, (detail: unknown) => told.push(detail));
    const held = await far.locks.lock(lock.name).lock();
    const waiting = near.locks.lock(lock.name).lock();
    await lock.queued(1);
    const secrets = [await lock.holder(), ...(await lock.waiters())].map((hold) => hold.slice(-13));
    const inspection = await near.locks.lock(lock.name).inspect();
    expect([inspection.holder?.id, inspection.waiters?.map(({ id }) => id)].flat()).toEqual([
      expect.stringMatching(new RegExp(`^${far.locks.id}:\\d+$`)),
      expect.stringMatching(new RegExp(`^${near.locks.id}:\\d+$`)),
    ]);
    told.push(inspection);
    await held.unlock();
    const lease = await waiting;
    secrets.push((await lock.holder()).slice(-13));
    await far.redis.del(lock.keys.lock);
    await far.redis.hset(lock.keys.lock, "of", "another type");
    told.push(await lease.unlock().catch((error: unknown) => error));
    told.push(
      await near.locks
        .lock(lock.name)
        .tryLock()
        .catch((error: unknown) => error),
    );
    await far.redis.del(lock.keys.lock);
    expect(secrets.length).toBe(3);
    const text = inspect(told, { depth: Number.POSITIVE_INFINITY, showHidden: true, maxStringLength: null });
    expect(text).toContain(near.locks.id);
    for (const secret of secrets) expect(text).not.toContain(secret);
    expect(text).not.toMatch(/:[0-9a-z]{21}\b/);
  });

  it("differs in every hold, also if the numbers are the same", async () => {
    const { near, far, lock } = stage;
    const bits = new Set<string>();
    for (const { locks } of [near, far])
      for (let i = 0; i < 50; i++) {
        const lease = await locks.lock(lock.name).lock();
        const id = await lock.holder();
        expect(id).toMatch(new RegExp(`^holdfast:client:${locks.id}:[0-9a-z]{21}$`));
        bits.add(id.slice(-13));
        await lease.unlock();
      }
    expect(bits.size).toBe(100);
  });

  it("is remembered for the latest holds only, within a fixed size", async () => {
    const { locks } = await stage.join();
    const used = (): number => {
      collect();
      return process.memoryUsage().arrayBuffers;
    };
    const before = used();
    for (let i = 0; i < 40; i++)
      await Promise.all(
        Array.from({ length: 100 }, async () => (await locks.lock(freshName()).lock()).unlock()),
      );
    expect(used() - before).toBeLessThan(1_000_000);
  });
});

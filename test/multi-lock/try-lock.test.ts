import { beforeAll, describe, expect, it } from "vitest";
import type { LockError } from "../../src/index.ts";
import { awake } from "../support/awake.ts";
import type { Party } from "../support/fixture.ts";
import { MultiLocks, three } from "../support/multi-locks.ts";
import { onScript } from "../support/scripts-sent.ts";
import { runs } from "../support/stage.ts";
import { until } from "../support/until.ts";

// The members of a multi-lock are tried together, and nobody else may be worse off by tries in vain.

const several = new MultiLocks();
let mine: Party;
let theirs: Party;
beforeAll(() => {
  ({ mine, theirs } = several);
});

/** What a try brought; undefined: a busy machine has not answered it in time. */
async function answered<T>(trying: Promise<T>): Promise<T | undefined> {
  return trying.catch((error: LockError) => {
    if (error.code !== "LOCK_UNAVAILABLE") throw error;
    return undefined;
  });
}

/** Calls `act` before this client sends this script for the first time, which waits for it. */
function before({ redis }: Party, script: "release" | "acquire", act: () => Promise<unknown>): void {
  const match = runs(script);
  let isFirst = true;
  onScript(redis, ({ name, args }, send) => {
    if (!isFirst || !match([name, ...args.map(String)])) return send();
    isFirst = false;
    void act().then(send);
  });
}

describe("a member after a busy one", () => {
  it("never blocks others, however many callers try all of them", async () => {
    const [busy, free] = three();
    const held = await theirs.locks.lock(busy).lock();
    const pollers = await Promise.all(Array.from({ length: 20 }, () => several.join()));
    const end = awake() + 1_500;
    let polls = 0;
    const polling = pollers.map(async ({ locks }) => {
      while (awake() < end || polls < 40) {
        expect((await answered(locks.multiLock([busy, free]).tryLock())) ?? null).toBeNull();
        polls++;
      }
    });
    const told: string[] = [];
    while (awake() < end || told.length < 40) {
      const lease = await answered(mine.locks.lock(free).tryLock());
      if (lease !== undefined) told.push(lease ? "had" : "held");
      await lease?.unlock();
    }
    await Promise.all(polling);
    expect(told).not.toContain("held");
    await held.unlock();
    await several.gone([busy, free]);
  });

  it("is requested anew by the callers that have shared its try", async () => {
    const [busy, free] = three();
    const held = await theirs.locks.lock(busy).lock();
    const all = mine.locks.multiLock([busy, free]).tryLock();
    const sharing = [mine.locks.lock(free).tryLock(), mine.locks.lock(free).lock({ wait: 10_000 })] as const;
    expect(await all).toBeNull();
    const first = await sharing[0];
    expect(first?.held).toBe(true);
    await first?.unlock();
    await (await sharing[1]).unlock();
    await held.unlock();
    await several.gone([busy, free]);
  });

  it("is not tried after one that another caller of the client requests, because its hold is not known yet", async () => {
    const [first, second] = three();
    const asked: unknown[] = [];
    onScript(mine.redis, ({ args }, send) => {
      asked.push(args[2]);
      send();
    });
    const single = mine.locks.lock(first).lock();
    expect(await mine.locks.multiLock([first, second]).tryLock()).toBeNull();
    expect(asked).toContain(several.look(first).keys.lock);
    expect(asked).not.toContain(several.look(second).keys.lock);
    await (await single).unlock();
    await several.gone([first, second]);
  });

  it("is acquired after one whose try another caller of the client has shared", async () => {
    const [first, second] = three();
    const single = mine.locks.lock(first).lock();
    const all = mine.locks.multiLock([first, second]).lock();
    await (await single).unlock();
    const lease = await all;
    expect(lease.held).toBe(true);
    await lease.unlock();
    await several.gone([first, second]);
  });
});

describe("tryLock() of several that overlap", () => {
  it("never refuses all of them", async () => {
    const names = three();
    const [a, b, c] = names;
    const others = [await several.join(), await several.join()];
    for (let round = 0, judged = 0; judged < 150; round++) {
      expect(round).toBeLessThan(1_000);
      const asked = performance.now();
      const leases = await Promise.all(
        [
          mine.locks.multiLock([a, b, c]).tryLock(),
          theirs.locks.multiLock([b, c]).tryLock(),
          ...others.map(({ locks }, i) => locks.multiLock(i === 0 ? [a, c] : names).tryLock()),
        ].map(answered),
      );
      const had = leases.flatMap((lease) => lease ?? []);
      // Redis is given half a second for each answer. A machine that stood still says nothing about
      // which call was in the way of which.
      const isJudged = performance.now() - asked < 250;
      if (isJudged) expect(had).toHaveLength(1); // any two of them have c in common
      for (const lease of had) await lease.unlock();
      if (isJudged) judged++;
      else await several.gone(names);
    }
    await several.gone(names);
  });

  it("tries once more when it got some, because the call that blocked it may have failed too", async () => {
    const [a, b] = three();
    const { locks, redis } = await several.join();
    const held = await theirs.locks.lock(b).lock();
    before({ locks, redis }, "release", () => held.unlock());
    const lease = await locks.multiLock([a, b]).tryLock();
    expect(lease?.held).toBe(true);
    await lease?.unlock();
    await several.gone([a, b]);
  });
});

describe("a partial set of locks", () => {
  it("is free before null is returned", async () => {
    const [a, b, c] = three();
    const held = await theirs.locks.lock(c).lock();
    const { locks, redis } = await several.join();
    const isRelease = runs("release");
    onScript(redis, ({ name, args }, send) => {
      if (isRelease([name, ...args.map(String)])) setTimeout(send, 20);
      else send();
    });
    for (const wait of [0, 60]) {
      expect(await locks.multiLock([a, b, c]).tryLock(wait)).toBeNull();
      expect(await several.holders([a, b])).toEqual(["", ""]);
    }
    await held.unlock();
    await several.gone([a, b, c]);
  });

  it("is free before the error is thrown", async () => {
    const [a, b, c] = three();
    await mine.redis.set(several.look(c).keys.lock, "something else", "PX", 5_000);
    await expect(mine.locks.multiLock([a, b, c]).lock()).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
      lockName: c,
    });
    expect(await several.holders([a, b])).toEqual(["", ""]);
    await mine.redis.del(several.look(c).keys.lock);
  });

  it("is given back when its client closes, or its caller leaves, between the tries and their answers", async () => {
    const names = three();
    const [first, second] = [await several.join(), await several.join()];
    const controller = new AbortController();
    const aborted = first.locks.multiLock(names).lock({ signal: controller.signal });
    const closed = second.locks.multiLock(names).lock();
    controller.abort("enough");
    const closing = second.locks.close();
    await expect(aborted).rejects.toBe("enough");
    await expect(closed).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
    await closing;
    await several.gone(names);
  });
});

it("a multi-lock waits in one queue and holds only earlier members, also if callers of the client share that member", async () => {
  const names = three();
  const [a, b, c] = names;
  const held = await theirs.locks.lock(b).lock();
  const { locks } = await several.join();
  const calls = [names, [b, c], names].map((members) => locks.multiLock(members).lock());
  await several.look(b).queued(1);
  await until(async () => (await several.holders([a]))[0] === locks.id);
  expect(await several.look(c).waiters()).toEqual([]);
  expect(await several.holders([c])).toEqual([""]);
  await held.unlock();
  await Promise.all(calls.map((call) => call.then((lease) => lease.unlock())));
  await several.gone(names);
});

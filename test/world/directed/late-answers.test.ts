import { describe, expect, test } from "vitest";
import type { LockClient } from "../../../src/index.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { outcomeOf, R, warm } from "./steps.ts";

// Answers that come late, or after the deadline of the lease that they are about, or never.

const HOUR = 3_600_000;
const LEASE = 2_500;
const KINDS = ["lock", "fairLock", "redissonLock", "redissonFencedLock", "spinLock"] as const;

describe("a body that ended in time succeeds although Redis stands still at its end", () => {
  const lockOf = (one: SceneProcess, kind: (typeof KINDS)[number], name: string) => {
    const { client } = one;
    const { product } = one.member.process;
    return kind === "lock" || kind === "fairLock" ? client[kind](name) : product[kind](client, name);
  };

  test.each(
    [1_000, 2_600, 4_000, 6_000, 10_000].flatMap((stall) => KINDS.map((kind) => [stall, kind] as const)),
  )(
    "for %i ms, %s: alone, while another process waits, and while a caller of the same one waits",
    (stall, kind) =>
      scene(async (world) => {
        const options = { leaseTime: LEASE };
        const [near] = world.processes(1, { ...options, localHandoffs: 0 });
        const [far] = world.processes(1, options);
        const lost = near.heard("lost");
        near.heard("error");
        far.heard("error");
        let isOver = (): void => {};
        const over = new Promise<void>((resolve) => {
          isOver = resolve;
        });
        const held: boolean[] = [];
        const body = async (lease: { readonly held: boolean }): Promise<string> => {
          await over;
          held.push(lease.held);
          return "done";
        };
        const bodies = ["s1", "s2", "s3"].map((name) => lockOf(near, kind, name).withLock(body));
        await world.pass(50);
        const others = [lockOf(far, kind, "s2"), lockOf(near, kind, "s3")].map((lock) =>
          lock.withLock(() => {}),
        );
        const handle = await lockOf(near, kind, "s4").lock();
        await world.pass(50);
        world.redis.pause(stall);
        isOver();
        const unlocked = outcomeOf(world.pass(1).then(() => handle.unlock()));
        expect(await Promise.all(bodies)).toEqual(["done", "done", "done"]);
        await Promise.all(others);
        expect([held, lost]).toEqual([[true, true, true], []]);
        expect(await unlocked).toEqual(stall < 5_000 ? null : ["LOCK_UNAVAILABLE", undefined]);
        await world.pass(stall);
      })(),
  );

  test.each([1_000, 2_600, 6_000])("for %i ms, several locks", (stall) =>
    scene(async (world) => {
      const [near] = world.processes(1, { leaseTime: LEASE });
      const lost = near.heard("lost");
      near.heard("error");
      const done = near.client.multiLock(["s1", "s2"]).withLock((lease) => {
        world.redis.pause(stall);
        return lease.held;
      });
      expect(await done).toBe(true);
      expect(lost).toEqual([]);
      await world.pass(stall);
    })(),
  );

  test(
    "a body that goes on after its lease has ended: that is a loss",
    scene(async (world) => {
      const [one] = world.processes(1);
      const lost = one.heard("lost");
      const work = one.client.lock("s").withLock({ lease: 400 }, () => world.pass(700));
      await expect(work).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(lost).toMatchObject([{ error: { reason: "expired" } }]);
    }),
  );
});

interface Form {
  /** Deletes the key, which another client then takes if `takes`. */
  readonly lose: (world: Scene, other: LockClient, takes: boolean) => Promise<unknown>;
  /** Acquires it, and sends a command about it between the calls of these. */
  readonly run: (one: SceneProcess, freeze: () => void, lapse: () => void) => Promise<unknown>;
}

const loseLock: Form["lose"] = async ({ redis }, other, takes) => {
  redis.drop("x");
  if (takes) await other.lock("x").lock();
};

const FORMS: Readonly<Record<string, Form>> = {
  "term.proclaim()": {
    async lose({ redis }, other, takes) {
      redis.drop("x");
      if (takes) await other.election("x").campaign();
    },
    async run({ client }, freeze, lapse) {
      const term = await client.election("x").campaign();
      freeze();
      const said = term.proclaim("late");
      lapse();
      await said;
    },
  },
  "lease.extend()": {
    lose: loseLock,
    async run({ client }, freeze, lapse) {
      const lease = await client.lock("x").lock();
      freeze();
      const extended = lease.extend(20_000);
      lapse();
      await extended;
    },
  },
  "lease.wanted": {
    lose: loseLock,
    async run({ client }, freeze, lapse) {
      const lease = await client.lock("x").lock();
      const lost = new Promise((_, reject) => client.on("lost", ({ error }) => reject(error)));
      freeze();
      expect(lease.wanted.aborted).toBe(false);
      lapse();
      await lost;
    },
  },
  "a body that has borrowed the lock, and wants its end confirmed": {
    lose: loseLock,
    run: (one, freeze, lapse) =>
      one.scope(async () => {
        await one.client.lock("x").lock();
        freeze();
        const ended = one.client.lock("x").withLock({ confirm: true }, () => {});
        lapse();
        await ended;
      }),
  },
  "a further entry into Redisson's lock": {
    async lose({ redis, processes }, _, takes) {
      redis.dropKey("x");
      const [third] = processes(1);
      if (takes) await third.member.process.product.redissonLock(third.client, "x").lock();
    },
    run: (one, freeze, lapse) =>
      one.scope(async () => {
        const lock = one.member.process.product.redissonLock(one.client, "x");
        await lock.lock();
        freeze();
        const entered = lock.lock();
        lapse();
        await entered;
      }),
  },
};

test.each(
  Object.entries(FORMS).flatMap(([name, form]) => [
    [name, "gone", form] as const,
    [name, "taken", form] as const,
  ]),
)("%s: the answer %j after the deadline leads to a loss by expiry", (_, answer, form) =>
  scene(async (world) => {
    const [one, other] = world.processes(2);
    await warm(world, one, other);
    const lost = one.heard("lost");
    let lapsed: Promise<unknown> = Promise.resolve();
    const freeze = (): void => {
      one.commands.freeze(300);
      // The clock steps before the answer is read.
      void one.on(() => true).answered(() => one.stepClock(HOUR));
    };
    const lapse = (): void => {
      lapsed = form.lose(world, other.client, answer === "taken");
    };
    await expect(form.run(one, freeze, lapse)).rejects.toMatchObject({
      code: "LOCK_LOST",
      reason: "expired",
    });
    await lapsed;
    expect(lost.map(({ error }) => error.reason)).toEqual(["expired"]);
    await other.client.close({ grace: 0 });
  })(),
);

test(
  "a renewal that fails after its lease was released is not reported",
  scene(async (world) => {
    const [one] = world.processes(1);
    const errors = one.heard("error");
    one.losesCommands("fail");
    const held = await one.take("lock");
    world.redis.flushScripts();
    world.redis.learnScripts({ except: "renew" });
    await one.on("renew").unknown(() => one.commands.freezeReplies(200));
    const unlocking = held.unlock();
    // It is sent once more, as text, after the release.
    const again = one.on(({ name }) => name === "eval").executed(() => one.commands.cut());
    await unlocking;
    await again;
    await world.pass(1_000);
    expect(errors).toEqual([]);
  }),
);

describe("an extension that is not awaited, and an unlock for another caller of the process", () => {
  const HAND = { leaseTime: 1_000, grantWindow: 800 };
  const LONGEST = 1_500;

  test.each(["lock", "redissonLock", "spinLock"] as const)(
    "the process crashes: others wait for the next caller's lease, and not for the extension: %s",
    (kind) =>
      scene(async (world) => {
        const [one, other] = world.processes(2, { ...HAND, localHandoffs: 16 });
        one.member.leaseTime = HOUR;
        const first = await one.take(kind);
        const second = one.take(kind);
        await world.pass(20);
        first.lease.extend(HOUR).catch(() => {});
        await first.unlock();
        await second;
        one.crash();
        const { result, took } = await world.timed(other.take(kind));
        expect(took).toBeLessThanOrEqual(LONGEST + R);
        await result.unlock();
      })(),
  );

  test(
    "the answer of the extension is lost: so too",
    scene(async (world) => {
      const [one] = world.processes(1, HAND);
      one.losesCommands("fail");
      one.member.leaseTime = HOUR;
      const first = await one.take("lock");
      const second = one.take("lock");
      await world.pass(20);
      const cut = one.on("renew").executed(() => one.commands.cut());
      const extending = outcomeOf(first.lease.extend(HOUR));
      await cut;
      expect(await extending).toEqual(["LOCK_UNAVAILABLE", undefined]);
      await first.unlock().catch(() => {});
      const lease = await second;
      expect(world.redis.left("lock:a")).toBeLessThanOrEqual(LONGEST);
      await lease.unlock();
    }),
  );

  test(
    "callers with equal leases still hand the lock off in memory",
    scene(async (world) => {
      const [one] = world.processes(1, HAND);
      const first = await one.take("lock");
      const second = one.take("lock");
      await first.lease.extend(1_000);
      const before = one.sent;
      await first.unlock();
      const lease = await second;
      expect(one.sent).toBe(before);
      await lease.unlock();
    }),
  );
});

describe("withLock, and Redis does not say at the end whether the lock was held", () => {
  const loseRelease = (one: SceneProcess): Promise<void> => {
    one.losesCommands("fail");
    return one.on("release").executed(() => one.commands.cut());
  };

  test(
    "without `confirm` it resolves, and emits an error event; with it, it rejects",
    scene(async (world) => {
      const [one] = world.processes(1);
      const errors = one.heard("error");
      const lock = one.client.lock("x");
      const first = loseRelease(one);
      const done = lock.withLock(() => 1);
      await first;
      expect(await done).toBe(1);
      expect(errors).toMatchObject([{ code: "LOCK_UNAVAILABLE" }]);
      await world.pass(100);
      const second = loseRelease(one);
      const failed = outcomeOf(lock.withLock({ confirm: true }, () => 2));
      await second;
      expect(await failed).toEqual(["LOCK_UNAVAILABLE", undefined]);
      expect(errors).toHaveLength(1);
    }),
  );

  test(
    "the error of a body comes first, and the missing answer is an event",
    scene(async (world) => {
      const [one] = world.processes(1);
      const errors = one.heard("error");
      const lost = loseRelease(one);
      const body = async (): Promise<never> => {
        await world.pass(1);
        throw new Error("the body failed");
      };
      const failed = one.client.lock("x").withLock({ confirm: true }, body);
      const caught = failed.catch((error: unknown) => error);
      await lost;
      expect(await caught).toMatchObject({ message: "the body failed" });
      expect(errors).toMatchObject([{ code: "LOCK_UNAVAILABLE" }]);
    }),
  );
});

import { describe, expect, test } from "vitest";
import { heldBody } from "../../support/held-body.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneLease, SceneProcess } from "./scene-process.ts";

// Two callers of a process share a hold, and leave it one after the other while both commands are
// under way. The first caller's command runs after the one that ended the hold, or a second time.
// What it finds then says nothing about the time in which its caller was inside.

/** Explicit leases: no renewal comes in between. */
const LEASE = { lease: 20_000 };
/** One that ends long before its hold does. */
const SHORT = { ...LEASE, maxHold: 1_000 };
type Terms = typeof LEASE | typeof SHORT;

/** A hold that two callers of `mine` share. */
interface Shared {
  readonly world: Scene;
  readonly mine: SceneProcess;
  readonly name: string;
  /** A caller leaves, and does not end the hold. */
  first(): Promise<unknown>;
  /** The last one leaves, and ends it. */
  last(): Promise<unknown>;
  /** The last one's lease. */
  readonly lease: { readonly held: boolean };
}
/** Makes a hold; `terms`: of its last caller. */
type MakeHold = (world: Scene, scenario: (shared: Shared) => Promise<void>, terms?: Terms) => Promise<void>;

/** Callers of a process that waited together get one hold: another process had all permits. */
async function together<T>({ pass, processes }: Scene, mine: SceneProcess, ask: () => T): Promise<T> {
  const [theirs] = processes(1);
  const held = await theirs.take("semaphore", { units: 3 });
  const head = mine.take("semaphore");
  await pass(100);
  const asked = ask();
  await held.unlock();
  await (await head).unlock();
  return asked;
}

const holds: Record<string, MakeHold> = {
  async "two permits"(world, scenario, terms = LEASE) {
    const [mine] = world.processes(1);
    const asked = await together(world, mine, () => [
      mine.take("semaphore", LEASE),
      mine.take("semaphore", terms),
    ]);
    const [first, last] = (await Promise.all(asked)) as [SceneLease, SceneLease];
    expect(world.redis.holds("sem:a")).toHaveLength(1);
    await scenario({
      world,
      mine,
      name: "sem:a",
      first: () => first.unlock(),
      last: () => last.unlock(),
      lease: last,
    });
  },

  async "two permits, one with `confirm`"(world, scenario, terms = LEASE) {
    const [mine] = world.processes(1);
    const { run, isInside, leave } = heldBody();
    const permits = mine.client.semaphore("sem:a", { permits: 3 });
    const [done, second] = await together(world, mine, () => [
      permits.withPermits(1, { ...LEASE, confirm: true }, run),
      mine.take("semaphore", terms),
    ]);
    await isInside;
    const last = (await second) as SceneLease;
    expect(world.redis.holds("sem:a")).toHaveLength(1);
    await scenario({
      world,
      mine,
      name: "sem:a",
      first() {
        leave();
        return done as Promise<unknown>;
      },
      last: () => last.unlock(),
      lease: last,
    });
  },

  async "a scope's writer and its reader"(world, scenario, terms = LEASE) {
    const [mine] = world.processes(1);
    await mine.scope(async () => {
      const [writer, reader] = [await mine.take("write", LEASE), await mine.take("read", terms)];
      await scenario({
        world,
        mine,
        name: "rw:a",
        first: () => writer.unlock(),
        last: () => reader.unlock(),
        lease: reader,
      });
    });
  },

  async "a scope's reader with `confirm` and its writer"(world, scenario, terms = LEASE) {
    const [mine] = world.processes(1);
    await mine.scope(async () => {
      const writer = await mine.take("write", terms);
      const { run, isInside, leave } = heldBody();
      const { read } = mine.client.readWriteLock("rw:a");
      const done = read.withLock({ ...LEASE, confirm: true }, run);
      await isInside;
      await scenario({
        world,
        mine,
        name: "rw:a",
        first() {
          leave();
          return done;
        },
        last: () => writer.unlock(),
        lease: writer,
      });
    });
  },

  async "two readers, one with `confirm`"(world, scenario, terms = LEASE) {
    const [mine] = world.processes(1);
    const last = await mine.take("read", terms);
    const { run, isInside, leave } = heldBody();
    const done = mine.client.readWriteLock("rw:a").read.withLock({ ...LEASE, confirm: true }, run);
    await isInside;
    expect(world.redis.holds("rw:a")).toHaveLength(1);
    await scenario({
      world,
      mine,
      name: "rw:a",
      first() {
        leave();
        return done;
      },
      last: () => last.unlock(),
      lease: last,
    });
  },
};
/** What becomes of a call: its error's code and reason, or null. */
const outcomeOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => null,
    ({ code, reason }) => [code, reason],
  );

const any = (): boolean => true;

/**
 * Redis does not know the script of the first caller's command, and then learns it: the hold ends
 * before the first command comes again, as text. `before`: before its end.
 */
async function unknownScript({ first, last, mine, world }: Shared, before = (): void => {}) {
  world.redis.flushScripts();
  const refused = mine.on(any).unknown(() => {
    mine.commands.freezeReplies(2_000);
    world.redis.learnScripts();
    before();
  });
  const firsts = outcomeOf(first());
  await refused;
  const lasts = outcomeOf(last());
  // The first command comes again.
  await mine.on(({ name }) => name === "eval").executed();
  return Promise.all([firsts, lasts]);
}

const isLost = ["LOCK_LOST", "gone"];

describe.each(Object.entries(holds))("%s", (_, hold) => {
  test(
    "Redis learns the script of the first release in between: not reported as lost",
    scene((world) =>
      hold(world, async (shared) => {
        const lost = shared.mine.heard("lost");
        expect([await unknownScript(shared), lost]).toEqual([[null, null], []]);
      }),
    ),
  );

  test(
    "the connection breaks before the replies of both releases: not reported as lost",
    scene((world) =>
      hold(world, async ({ mine, first, last, name }) => {
        const lost = mine.heard("lost");
        mine.commands.freezeReplies(1_000);
        const calls = [outcomeOf(first())];
        // One after the other, as two callers leave.
        await world.pass(1);
        calls.push(outcomeOf(last()));
        await world.until(() => world.redis.holds(name).length === 0);
        mine.commands.cut();
        // Both commands come again.
        const again = [mine.on(any).executed(), mine.on("release").executed()];
        expect([await Promise.all(calls), lost]).toEqual([[null, null], []]);
        await Promise.all(again);
      }),
    ),
  );

  test(
    "the key is deleted: reported as lost to both",
    scene((world) =>
      hold(world, async (shared) => {
        const lost = shared.mine.heard("lost");
        const told = await unknownScript(shared, () => world.redis.drop(shared.name));
        expect([told, lost.length]).toEqual([[isLost, isLost], 2]);
      }),
    ),
  );

  test(
    "the lease of the last caller ends in between, and is withdrawn: not reported as lost to the first one",
    scene((world) =>
      hold(
        world,
        async (shared) => {
          const lost = shared.mine.heard("lost");
          const ended = () => world.until(() => !shared.lease.held);
          const [told] = await unknownScript({ ...shared, last: ended });
          expect([told, lost.map(({ error }) => error.reason)]).toEqual([null, ["expired"]]);
          await shared.last().catch(() => {});
        },
        SHORT,
      ),
    ),
  );

  test(
    "the key is deleted, and the other one's lease ends: reported as lost to the caller that has left",
    scene((world) =>
      hold(
        world,
        async ({ mine, first, last, lease, name }) => {
          const lost = mine.heard("lost");
          world.redis.drop(name);
          mine.commands.freezeReplies(3_000);
          const calls = [outcomeOf(first())];
          await mine.on("leave").executed();
          expect(lease.held).toBe(false);
          expect(await Promise.all(calls)).toEqual([isLost]);
          expect(lost.map(({ error }) => error.reason)).toEqual(["expired", "gone"]);
          await last().catch(() => {});
        },
        SHORT,
      ),
    ),
  );

  test(
    "the other caller leaves in the turn in which the loss is read: reported as lost also to that one",
    scene((world) =>
      hold(world, async ({ mine, first, last, name }) => {
        const lost = mine.heard("lost");
        world.redis.drop(name);
        const executed = mine.on(any).executed();
        const calls = [outcomeOf(first())];
        await executed;
        // The reply is read after 0.2 ms, before what is sent at the end of that turn.
        await world.pass(0.1995);
        calls.push(outcomeOf(last()));
        expect([await Promise.all(calls), lost.length]).toEqual([[isLost, isLost], 2]);
      }),
    ),
  );
});

test(
  "a force-release is read while a reader joins: reported once",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2);
    await (await mine.take("read")).unlock();
    const held = await theirs.take("write");
    const head = mine.take("read");
    await world.pass(100);
    await held.unlock();
    await (await head).unlock();
    const first = await mine.take("read", { lease: 10_000 });
    const lost = mine.heard("lost");
    mine.commands.freezeReplies(1_000);
    // Its longer lease is asked for.
    const joining = mine.on(any).sent();
    const second = mine.take("read", { lease: 60_000 });
    await joining;
    await world.pass(1);
    await theirs.client.readWriteLock("rw:a").read.forceUnlock();
    await world.until(() => !first.held);
    await (await second).unlock();
    expect(lost.map(({ error, call }) => [error.reason, call > 0])).toEqual([["revoked", true]]);
    await first.unlock().catch(() => {});
  }),
);

test(
  "a reader with `confirm` leaves, its writer hands the lock on here, and the next one ends it: not reported as lost",
  scene(async (world) => {
    const [mine] = world.processes(1);
    const lost = mine.heard("lost");
    let ask = (): void => {};
    const asked = new Promise<void>((resolve) => {
      ask = resolve;
    });
    // Outside of the scope.
    const next = asked.then(() =>
      mine.scope(async () => {
        const writer = await mine.take("write", LEASE);
        // Without a command: the rest of the writer's lease is long enough.
        await (await mine.take("read", { lease: 5_000 })).unlock();
        await writer.unlock();
      }),
    );
    await mine.scope(async () => {
      const writer = await mine.take("write", LEASE);
      const { run, isInside, leave } = heldBody();
      const done = mine.client.readWriteLock("rw:a").read.withLock({ ...LEASE, confirm: true }, run);
      await isInside;
      ask();
      await world.pass(10);
      const told = await unknownScript({
        world,
        mine,
        name: "rw:a",
        first() {
          leave();
          return done;
        },
        async last() {
          await writer.unlock();
          await next;
        },
        lease: writer,
      });
      expect([told, lost]).toEqual([[null, null], []]);
    });
  }),
);

test(
  "a writer that got the lock from another one here leaves its reader inside: that one goes on, and writers wait",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2);
    let ask = (): void => {};
    const asked = new Promise<void>((resolve) => {
      ask = resolve;
    });
    // Outside of the scope.
    const next = asked.then(() =>
      mine.scope(async () => {
        const writer = await mine.take("write");
        const reader = await mine.take("read");
        await writer.unlock();
        await world.pass(20);
        expect([reader.held, await theirs.tryTake("write")]).toEqual([true, null]);
        await reader.unlock();
      }),
    );
    await mine.scope(async () => {
      const writer = await mine.take("write");
      await (await mine.take("read")).unlock();
      ask();
      await world.pass(10);
      await writer.unlock();
    });
    await next;
    await (await theirs.take("write")).unlock();
  }),
);

test(
  "a reader inside a writer's lease is told of as part of it: one `release`, and one `lost`",
  scene(async (world) => {
    const [mine] = world.processes(1);
    const [released, lost] = [mine.heard("release"), mine.heard("lost")];
    await mine.scope(async () => {
      const writer = await mine.take("write");
      await (await mine.take("read")).unlock();
      await writer.unlock();
      expect(released.map(({ kind }) => kind)).toEqual(["write"]);
      const second = await mine.take("write");
      const reader = await mine.take("read");
      await mine.client.readWriteLock("rw:a").write.forceUnlock();
      await world.until(() => !second.held);
      expect([lost.map(({ kind }) => kind), reader.held]).toEqual([["write"], false]);
      await outcomeOf(second.unlock());
      await outcomeOf(reader.unlock());
    });
  }),
);

test(
  "the renewal of a reader inside a writer's lease finds no key: both learn it at once",
  scene(async (world) => {
    const [mine] = world.processes(1);
    await mine.scope(async () => {
      const writer = await mine.take("write", { lease: 50_000 });
      const reader = await mine.take("read");
      world.redis.drop("rw:a");
      await world.pass(10_100);
      expect([writer.held, reader.held]).toEqual([false, false]);
      expect(writer.lease.signal.reason).toMatchObject({ reason: "gone" });
      await outcomeOf(reader.unlock());
      await outcomeOf(writer.unlock());
    });
  }),
);

describe("a second unlock() of a caller that shared its hold resolves, too:", () => {
  test(
    "of a reader that left while others stay",
    scene(async (world) => {
      const [mine] = world.processes(1);
      const stays = await mine.take("read");
      const { read } = mine.client.readWriteLock("rw:a");
      const lease = await mine.does(() => read.lock());
      await mine.does(() => Promise.all([lease.unlock(), lease.unlock()]));
      await mine.does(() => lease.unlock());
      await stays.unlock();
    }),
  );

  test(
    "of the last reader, in whose turn another one comes",
    scene(async (world) => {
      const [mine] = world.processes(1);
      await (await mine.take("read")).unlock();
      const { read } = mine.client.readWriteLock("rw:a");
      const [first, second] = await mine.does(() => Promise.all([read.lock(), read.lock()]));
      const next = await mine.does(async () => {
        void first.unlock();
        const twice = [second.unlock(), second.unlock()];
        const lease = await read.lock();
        await Promise.all(twice);
        return lease;
      });
      await mine.does(() => next.unlock());
    }),
  );

  test(
    "of a reader that was confirmed while others stay",
    scene(async (world) => {
      const [mine] = world.processes(1);
      const stays = await mine.take("read");
      const { read } = mine.client.readWriteLock("rw:a");
      await mine.does(async () => {
        const inside = await read.withLock({ confirm: true }, async (lease) => lease);
        await inside.unlock();
      });
      await stays.unlock();
    }),
  );

  test(
    "of permits, which the next caller here has, or Redis",
    scene(async (world) => {
      const [mine] = world.processes(1);
      const permits = mine.client.semaphore("sem:a", { permits: 3 });
      const asked = await together(world, mine, () => [permits.acquire(), mine.take("semaphore")] as const);
      const [lease, other] = [await asked[0], await asked[1]];
      const all = permits.acquire(3);
      await world.pass(5);
      await mine.does(() => Promise.all([lease.release(), lease.release()]));
      await other.unlock();
      const three = await all;
      const waiting = permits.acquire(3);
      await world.pass(5);
      await mine.does(() => Promise.all([three.release(), three.release()]));
      await mine.does(async () => (await waiting).release());
    }),
  );
});

test.each([
  ["gets its units back into Redis", null],
  ["learns that they were gone", ["LOCK_LOST", "gone"]],
])("a permit that is released in the turn in which the other one's time ends %s", (_, outcome) =>
  scene(async (world) => {
    const [mine] = world.processes(1);
    const permits = mine.client.semaphore("sem:a", { permits: 3 });
    const asked = await together(
      world,
      mine,
      () => [permits.acquire(LEASE), permits.acquire(SHORT)] as const,
    );
    const [first, last] = [await asked[0], await asked[1]];
    if (outcome) world.redis.drop("sem:a");
    await world.pass(500);
    const told = await mine.does(async () => {
      mine.block(600);
      const leaving = outcomeOf(first.release());
      void last.signal; // finds that its time is over
      return [await leaving, world.redis.holds("sem:a").length];
    });
    await last.release().catch(() => {});
    expect(told).toEqual([outcome, 0]);
  })(),
);

test(
  "readers whose hold was gone before they left: it is told, once, by the reader that joins in that turn",
  scene(async (world) => {
    const [mine] = world.processes(1);
    const { read } = mine.client.readWriteLock("rw:a");
    const [one, other] = await mine.does(() => Promise.all([read.lock(), read.lock()]));
    const lost = mine.heard("lost");
    world.redis.drop("rw:a");
    const told = await mine.does(async () => {
      const leaving = [outcomeOf(one.unlock()), outcomeOf(other.unlock())];
      const next = read.lock({ lease: 100_000 }); // longer than the hold's: it joins
      const outcomes = await Promise.all(leaving);
      await (await next).unlock();
      return outcomes;
    });
    expect([told, lost.map(({ error }) => error.reason)]).toEqual([[null, null], ["gone"]]);
  }),
);

test(
  "a release of one permit of several whose reply is lost, and whose copy finds nothing: `unknown`",
  scene(async (world) => {
    const [mine] = world.processes(1);
    const asked = await together(
      world,
      mine,
      () => [mine.take("semaphore", LEASE), mine.take("semaphore", LEASE)] as const,
    );
    const [first, last] = [await asked[0], await asked[1]];
    mine.commands.freezeReplies(1_000);
    const done = mine.on(any).executed();
    const told = outcomeOf(first.unlock());
    await done;
    world.redis.drop("sem:a");
    mine.commands.cut();
    expect(await told).toEqual(["LOCK_LOST", "unknown"]);
    await last.unlock().catch(() => {});
  }),
);

import { describe, expect, test } from "vitest";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, inTurn, L, outcomeOf, R, warm } from "./steps.ts";

// Readers that come into a hold of their process, at every moment at which the answer that admits
// them may be old or wrong; and readers' and writers' commands that are lost or come twice.

/** So long after a request, its process admits readers without a command. */
const SHARE_TIME = 25;
const REPLY_TIMEOUT = 5_000;
/** What is taken for the first of these has to be raised for the second one, which is a question. */
const [SHORT, LONG] = [{ lease: 10_000 }, { lease: 60_000 }];
/** So long a turn of the event loop has readers that come and go without a command. */
const TURN = 1;

const closes = ({ pass }: Scene): Promise<void> => pass(SHARE_TIME + 1);

/** Two processes that have used the lock. */
async function pair(world: Scene): Promise<[SceneProcess, SceneProcess]> {
  const [mine, theirs] = world.processes(2);
  for (const one of [mine, theirs])
    for (const kind of ["read", "write"] as const) await (await one.take(kind)).unlock();
  return [mine, theirs];
}

/** Calls this, from outside of the scope of the code that calls the result. */
function outOfScope<T>(work: () => Promise<T>): () => Promise<T> {
  let start = (): void => {};
  const done = new Promise<void>((resolve) => {
    start = resolve;
  }).then(work);
  return () => {
    start();
    return done;
  };
}

describe("a reader that joins", () => {
  test(
    "within 25 ms of a request enters without a command, and later ones send one together",
    scene(async (world) => {
      const [mine] = await pair(world);
      const readers = [await mine.take("read")];
      await world.pass(SHARE_TIME - 2);
      const before = mine.sent;
      readers.push(await mine.take("read"));
      const tried = await mine.tryTake("read");
      expect(mine.sent).toBe(before);
      await closes(world);
      readers.push(...(await Promise.all(Array.from({ length: 20 }, () => mine.take("read")))));
      expect(mine.sent).toBe(before + 1);
      expect(world.redis.holds("rw:a")).toHaveLength(1);
      for (const reader of readers) await reader.unlock();
      await tried?.unlock();
    }),
  );

  test.each(["takes the lock", "asks again"] as const)(
    "a late answer to the command that %s admits no reader: its time counts from when it was sent",
    (what) =>
      scene(async (world) => {
        const [mine, theirs] = await pair(world);
        const first = what === "asks again" ? await mine.take("read") : null;
        await closes(world);
        mine.commands.freezeReplies(300);
        const asked = mine.on(() => true).executed();
        const asking = mine.take("read");
        await asked;
        const writing = theirs.take("write");
        await world.pass(50);
        const second = await asking;
        // Its answer came while no caller waited. The next one comes after the writer.
        expect(await mine.tryTake("read")).toBeNull();
        await first?.unlock();
        await second.unlock();
        await inTurn(world, writing);
      })(),
  );

  test(
    "a grant that is read late, and claimed, admits no reader: its time counts from the grant",
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      const [third] = world.processes(1);
      await warm(world, third, theirs);
      const held = await theirs.take("write");
      // An explicit lease, longer than the grant window.
      const reading = mine.take("read", SHORT);
      await world.pass(20);
      mine.messages.freeze(300);
      const claimed = mine.on("renew").answered();
      await held.unlock();
      await world.pass(2 * SHARE_TIME);
      const writing = third.take("write");
      const first = await reading;
      await claimed;
      expect(await mine.tryTake("read", SHORT)).toBeNull();
      await first.unlock();
      await inTurn(world, writing);
    }),
  );

  test(
    "counts as a user: the last reader's hold stays until the join is answered",
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      const first = await mine.take("read");
      const hold = world.redis.holds("rw:a");
      await closes(world);
      const joining = mine.take("read");
      await first.unlock();
      const second = await joining;
      expect([second.held, world.redis.holds("rw:a")]).toEqual([true, hold]);
      expect(await theirs.tryTake("write")).toBeNull();
      await second.unlock();
    }),
  );

  test(
    "leaves before its answer, as does the last reader: the lock is free",
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      const first = await mine.take("read");
      await closes(world);
      const enough = new AbortController();
      const gone = mine.take("read", { signal: enough.signal }).catch((reason: unknown) => reason);
      await first.unlock();
      enough.abort("enough");
      expect(await gone).toBe("enough");
      const { result: writer, took } = await world.timed(theirs.take("write"));
      expect(took).toBeLessThan(BY_MESSAGE);
      await writer.unlock();
    }),
  );

  test(
    "finds its hold gone: all users learn of the loss, and it waits for a hold of its own",
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      const users = [await mine.take("read"), await mine.take("read")];
      await closes(world);
      world.redis.drop("rw:a");
      world.shows(/two holders of rw:a/);
      const writer = await theirs.take("write");
      const joining = mine.take("read");
      await world.until(() => users.every(({ held }) => !held));
      for (const user of users) {
        expect(user.lease.signal.reason).toMatchObject({ reason: "gone" });
        expect(await outcomeOf(user.unlock())).toEqual(["LOCK_LOST", "gone"]);
      }
      await world.pass(10);
      expect(world.redis.queue("rw:a")).toEqual([mine.number]);
      await writer.unlock();
      const next = await joining;
      expect(next.token).toBeGreaterThan(writer.token);
      await next.unlock();
    }),
  );

  test(
    "gets no answer: its call fails, the others go on, and no other reader enters their hold",
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      const first = await mine.take("read");
      await closes(world);
      mine.commands.freeze(REPLY_TIMEOUT + 500);
      expect(await outcomeOf(mine.take("read"))).toEqual(["LOCK_UNAVAILABLE", undefined]);
      await world.pass(600);
      const second = await mine.take("read");
      expect([first.held, world.redis.holds("rw:a").length]).toEqual([true, 2]);
      await first.unlock();
      await second.unlock();
      const { took } = await world.timed(theirs.take("write").then((writer) => writer.unlock()));
      expect(took).toBeLessThan(R);
    }),
  );

  test(
    "was granted by a message, and the answer to its queueing comes later: it takes nothing from the readers",
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      await warm(world, mine, theirs);
      const writer = await theirs.take("write");
      const queued = mine.on("acquire").executed(() => mine.commands.freezeReplies(2_000));
      const reading = mine.take("read");
      await queued;
      await world.pass(10);
      await writer.unlock();
      const reader = await reading;
      // That answer never comes: the command comes again, and finds the hold of its process.
      const again = mine.on("acquire").executed();
      mine.commands.cut();
      await again;
      await world.pass(50);
      expect(reader.held).toBe(true);
      expect(await theirs.tryTake("write")).toBeNull();
      await reader.unlock();
      await (await theirs.take("write")).unlock();
    }),
  );

  test(
    "comes late in a turn of the event loop: it enters after that turn, without a command",
    scene(async (world) => {
      const [mine] = await pair(world);
      const first = await mine.take("read");
      const { sent } = mine;
      const readers = await mine.does(() => {
        const calls = [mine.take("read")];
        mine.block(TURN + 1);
        calls.push(mine.take("read"));
        return Promise.all(calls);
      });
      const next = await mine.take("read");
      expect([mine.sent - sent, world.redis.holds("rw:a").length]).toEqual([0, 1]);
      for (const reader of [first, ...readers, next]) await reader.unlock();
    }),
  );

  test(
    "comes late in a turn that goes on for longer than 25 ms: Redis is asked, and a writer waits",
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      const first = await mine.take("read");
      const writing = theirs.take("write");
      await world.pass(1);
      const { read } = mine.client.readWriteLock("rw:a");
      const [second, third] = await mine.does(() => {
        const calls = [read.tryLock()];
        mine.block(TURN + 1);
        calls.push(read.tryLock());
        mine.block(SHARE_TIME);
        return Promise.all(calls);
      });
      expect([second?.held, third]).toEqual([true, null]);
      await second?.unlock();
      await first.unlock();
      await inTurn(world, writing);
    }),
  );

  test(
    "comes late in a turn in which it leaves again, as does the last reader: the lock is free",
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      const first = await mine.take("read");
      const enough = new AbortController();
      const { read } = mine.client.readWriteLock("rw:a");
      await mine.does(async () => {
        const second = await read.lock();
        mine.block(TURN + 1);
        const third = read.lock({ signal: enough.signal }).catch((reason: unknown) => reason);
        const unlocked = [second.unlock(), first.unlock()];
        enough.abort("enough");
        expect(await third).toBe("enough");
        await Promise.all(unlocked);
      });
      const { result: writer, took } = await world.timed(theirs.take("write"));
      expect(took).toBeLessThan(BY_MESSAGE);
      await writer.unlock();
    }),
  );

  test(
    "wants a longer lease: it shares the hold, which one command raises",
    scene(async (world) => {
      const [mine] = await pair(world);
      const first = await mine.take("read", { lease: 10_000 });
      const { sent } = mine;
      const second = await mine.take("read", { lease: 20_000 });
      expect([mine.sent - sent, world.redis.holds("rw:a").length]).toEqual([1, 1]);
      await first.unlock();
      await second.unlock();
    }),
  );

  test(
    "wants a much shorter lease: it has a hold of its own, by one command",
    scene(async (world) => {
      const [mine] = await pair(world);
      const first = await mine.take("read", { lease: 60_000 });
      const { sent } = mine;
      const second = await mine.take("read", { lease: 1_000 });
      expect([mine.sent - sent, world.redis.holds("rw:a").length]).toEqual([1, 2]);
      await first.unlock();
      await second.unlock();
    }),
  );

  test(
    "waits behind a waiting writer of its process: it does not enter with the readers before that one",
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      const held = await theirs.take("write");
      const order: string[] = [];
      const enter = async (kind: "read" | "write", what: string): Promise<void> => {
        const lease = await mine.take(kind);
        order.push(what);
        await world.pass(50);
        await lease.unlock();
      };
      const all = [enter("read", "reader")];
      await world.pass(10);
      all.push(enter("write", "writer"));
      await world.pass(10);
      all.push(enter("read", "late reader"));
      await world.pass(10);
      await held.unlock();
      await Promise.all(all);
      expect(order).toEqual(["reader", "writer", "late reader"]);
    }),
  );

  test(
    "comes right after a grant that names a waiting writer: it is busy, by one command",
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      const [holder] = world.processes(1);
      const held = await holder.take("write");
      const reading = [mine.take("read")];
      await world.pass(50);
      reading.push(mine.take("read"));
      await world.pass(50);
      const writing = theirs.take("write");
      await world.pass(50);
      await held.unlock();
      const readers = await Promise.all(reading);
      const { sent } = mine;
      expect(await mine.tryTake("read")).toBeNull();
      expect(mine.sent - sent).toBe(1);
      for (const reader of readers) await reader.unlock();
      await inTurn(world, writing);
    }),
  );

  test.each(["busy while a writer waits", "inside while none does"] as const)(
    "comes when a writer has left its own reader inside: Redis is asked, and it is %s",
    (outcome) =>
      scene(async (world) => {
        const [mine, theirs] = await pair(world);
        const try_ = outOfScope(() => mine.tryTake("read"));
        await mine.scope(async () => {
          const writer = await mine.take("write");
          const reader = await mine.take("read");
          const writing = outcome === "inside while none does" ? null : theirs.take("write");
          await world.pass(2);
          const unlocking = writer.unlock();
          const { sent } = mine;
          const second = await try_();
          await unlocking;
          expect([second === null, mine.sent > sent]).toEqual([writing !== null, true]);
          expect(world.redis.holds("rw:a")).toHaveLength(1);
          await second?.unlock();
          await reader.unlock();
          if (writing) await inTurn(world, writing);
        });
      })(),
  );

  test(
    "comes after a waiting writer of its process: it does not overtake it",
    scene(async (world) => {
      const [mine] = await pair(world);
      const first = await mine.take("read");
      const order: string[] = [];
      const enter = async (kind: "read" | "write"): Promise<void> => {
        const lease = await mine.take(kind);
        order.push(kind);
        await lease.unlock();
      };
      const all = [enter("write"), enter("read"), enter("read")];
      await world.pass(50);
      await first.unlock();
      await Promise.all(all);
      expect(order).toEqual(["write", "read", "read"]);
    }),
  );
});

test(
  "the last of several readers leaves while a writer is known to wait: it has the lock although the loop is blocked",
  scene(async (world) => {
    const [mine, theirs] = await pair(world);
    const readers = [await mine.take("read"), await mine.take("read")];
    const writing = theirs.take("write");
    await closes(world);
    expect(await mine.tryTake("read")).toBeNull();
    const unlocking = mine.does(() => {
      const unlocked = readers.map((reader) => reader.unlock());
      mine.block(2_000);
      return Promise.all(unlocked);
    });
    const { result: writer, took } = await world.timed(writing);
    expect(took).toBeLessThan(2_000);
    await unlocking;
    await writer.unlock();
  }),
);

test(
  "neither readers nor writers starve while the others never pause",
  scene(async (world) => {
    const [mine, theirs] = await pair(world);
    const counts = { read: 0, write: 0 };
    let isOver = false;
    const loop = async (one: SceneProcess, kind: "read" | "write"): Promise<void> => {
      while (!isOver) {
        const lease = await one.take(kind);
        await world.pass(1);
        await lease.unlock();
        counts[kind]++;
      }
    };
    const all = [1, 2, 3, 4].map(() => loop(mine, "read"));
    all.push(loop(theirs, "write"), loop(theirs, "write"));
    await world.pass(2_000);
    isOver = true;
    await Promise.all(all);
    expect(Math.min(counts.read, counts.write)).toBeGreaterThan(40);
  }),
);

test(
  "a reading process is stopped: a writer waits for the rest of its hold, and its readers have nothing when it goes on",
  scene(async (world) => {
    const [mine, theirs] = await pair(world);
    const readers = [await mine.take("read"), await mine.take("read")];
    const writing = theirs.take("write");
    await world.pass(100);
    const rest = world.redis.left("rw:a");
    mine.pause(2 * L);
    const { result: writer, took } = await world.timed(writing);
    expect(took).toBeGreaterThanOrEqual(rest - 1);
    expect(took).toBeLessThanOrEqual(rest + R);
    await world.pass(2 * L - took);
    for (const reader of readers) {
      expect([reader.held, reader.lease.signal.aborted]).toEqual([false, true]);
      expect(await outcomeOf(reader.unlock())).toEqual(["LOCK_LOST", "expired"]);
    }
    // Nor do other callers of its process come into what it had.
    expect(await mine.tryTake("read")).toBeNull();
    expect([writer.held, world.redis.holders("rw:a")]).toEqual([true, [theirs.number]]);
    await writer.unlock();
    const next = await mine.take("read");
    expect(next.token).toBeGreaterThan(writer.token);
    await next.unlock();
  }),
);

test(
  "the end of a writer whose scope reads on is lost: unlock() rejects, and it is sent again: others read",
  scene(async (world) => {
    const [mine, theirs] = await pair(world);
    mine.losesCommands("fail");
    await mine.scope(async () => {
      const writer = await mine.take("write");
      const reader = await mine.take("read");
      const reading = theirs.take("read");
      await world.pass(100);
      const cut = mine.on(() => true).sent(() => mine.commands.cut());
      const unlocking = outcomeOf(writer.unlock());
      await cut;
      expect(await unlocking).toEqual(["LOCK_UNAVAILABLE", undefined]);
      const { result: other, took } = await world.timed(reading);
      expect(took).toBeLessThan(R);
      expect([reader.held, other.token]).toEqual([true, writer.token]);
      await other.unlock();
      await reader.unlock();
    });
    await (await theirs.take("write")).unlock();
  }),
);

test.each(["a reader", "a writer whose scope reads on"] as const)(
  "a copy of the command that queued %s arrives after its end: the lock is given back",
  (which) =>
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      await warm(world, mine, theirs);
      const held = await theirs.take("write");
      const cut = mine.on("acquire").sent(() => mine.commands.cut({ copies: 500 }));
      const visit = mine.scope(async () => {
        if (which === "a reader") return (await mine.take("read")).unlock();
        const writer = await mine.take("write");
        const reader = await mine.take("read");
        await writer.unlock();
        await reader.unlock();
      });
      await cut;
      await world.pass(100);
      expect(world.redis.queue("rw:a")).toEqual([mine.number]);
      await held.unlock();
      await visit;
      await mine.on("acquire").executed();
      await world.until(
        () => world.redis.holds("rw:a").length === 0 && world.redis.queue("rw:a").length === 0,
      );
      const { took } = await world.timed(theirs.take("write").then((writer) => writer.unlock()));
      expect(took).toBeLessThan(BY_MESSAGE);
    })(),
);

test.each(["for a hold", "whether more may come in"] as const)(
  "a writer comes while its process asks %s: later readers do not overtake it",
  (what) =>
    scene(async (world) => {
      const [mine, theirs] = await pair(world);
      await closes(world);
      await warm(world, mine, theirs);
      const first = what === "for a hold" ? null : await mine.take("read", SHORT);
      mine.commands.freezeReplies(10);
      const asking = mine.take("read", LONG);
      const writing = mine.take("write");
      await world.until(() => world.redis.queue("rw:a").length === 1);
      // Redis was asked before the writer came, and says that no caller waits.
      const second = await asking;
      expect(await mine.tryTake("read", LONG)).toBeNull();
      await first?.unlock();
      await second.unlock();
      await (await writing).unlock();
    })(),
);

test(
  "an answer is read after the end of the hold that it is about: its reader has another hold",
  scene(async (world) => {
    const [mine] = await pair(world);
    await closes(world);
    const first = await mine.take("read", { lease: 500 });
    const before = world.redis.holds("rw:a");
    mine.commands.freezeReplies(1_000);
    const second = await mine.take("read", LONG);
    expect([first.held, second.held]).toEqual([false, true]);
    expect(world.redis.holds("rw:a")).not.toEqual(before);
    expect(await outcomeOf(first.unlock())).toEqual(["LOCK_LOST", "expired"]);
    await second.unlock();
  }),
);

test(
  "readers that come and go without a command leave others a turn of the event loop",
  scene(async (world) => {
    const [mine] = await pair(world);
    await closes(world);
    const first = await mine.take("read");
    const hasTurned = await mine.does(async () => {
      let isTurned = false;
      mine.member.process.soon(() => {
        isTurned = true;
      });
      const { read } = mine.client.readWriteLock("rw:a");
      for (let i = 0; i < SHARE_TIME - 5 && !isTurned; i++) {
        const reader = await read.lock();
        mine.block(1);
        await reader.unlock();
      }
      return isTurned;
    });
    expect(hasTurned).toBe(true);
    await first.unlock();
  }),
);

test(
  "after a lost connection a reader asks Redis, because the server may have forgotten the hold",
  scene(async (world) => {
    const [mine, theirs] = await pair(world);
    await closes(world);
    const first = await mine.take("read");
    mine.commands.cut({ back: 5 });
    world.redis.drop("rw:a");
    world.shows(/two holders of rw:a/);
    const writer = await theirs.take("write");
    expect(await mine.tryTake("read")).toBeNull();
    expect(first.held).toBe(false);
    await first.unlock().catch(() => {});
    await writer.unlock();
  }),
);

test(
  "a hold that readers share is renewed once for all of them",
  scene(async (world) => {
    const [mine] = await pair(world);
    await closes(world);
    const readers = [await mine.take("read"), await mine.take("read"), await mine.take("read")];
    await world.pass(SHARE_TIME + 1);
    const { sent } = mine;
    await world.pass(L / 3);
    expect(mine.sent - sent).toBe(1);
    for (const reader of readers) {
      expect(reader.held).toBe(true);
      await reader.unlock();
    }
  }),
);

test(
  "a writer's lease ends: the reader of its scope has lost it, too",
  scene(async (world) => {
    const [mine, theirs] = await pair(world);
    await closes(world);
    await mine.scope(async () => {
      const writer = await mine.take("write", { lease: 2_000 });
      const reader = await mine.take("read");
      await world.pass(2_500);
      expect([writer.held, reader.held]).toEqual([false, false]);
      for (const one of [reader, writer]) expect((await outcomeOf(one.unlock()))?.[0]).toBe("LOCK_LOST");
    });
    await (await theirs.take("write")).unlock();
  }),
);

test(
  "the reader of a scope stays after its writer: it keeps the hold alive by itself",
  scene(async (world) => {
    const [mine, theirs] = await pair(world);
    await closes(world);
    await mine.scope(async () => {
      const writer = await mine.take("write", { lease: 2_000 });
      const reader = await mine.take("read", { lease: 4_000, watchdog: true });
      await writer.unlock();
      await world.pass(6_000);
      expect(reader.held).toBe(true);
      expect(await theirs.tryTake("write")).toBeNull();
      world.redis.drop("rw:a");
      expect((await outcomeOf(reader.lease.extend(1_000) as Promise<void>))?.[0]).toBe("LOCK_LOST");
      await reader.unlock().catch(() => {});
    });
  }),
);

import { expect, test } from "vitest";
import { scene } from "./scene.ts";
import type { SceneLease } from "./scene-process.ts";
import { BY_MESSAGE, inTurn, L, outcomeOf, parked, R } from "./steps.ts";

// docs/guarantees.md, "readWriteLock".

test(
  "a writer is alone; readers are inside together, and those of a process share one hold",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const readers = await Promise.all([one.take("read"), one.take("read"), other.take("read")]);
    expect(world.redis.holds("rw:a")).toHaveLength(2);
    const writing = other.take("write");
    await world.pass(100);
    for (const reader of readers) await reader.unlock();
    const { result: writer, took } = await world.timed(writing);
    expect(took).toBeLessThan(BY_MESSAGE);
    expect(await one.tryTake("read")).toBeNull();
    await writer.unlock();
  }),
);

test(
  "a lock of the same name is another one: neither waits for the other, and a forced release ends only its own",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const { read, write } = one.client.readWriteLock("same");
    const lock = other.client.lock("same");
    for (const mine of [read, write]) {
      const inside = await mine.lock();
      const lease = await lock.lock();
      const { wanted } = lease;
      const [reading, writing, waiting] = [
        other.client.readWriteLock("same").write.lock(),
        one.client.readWriteLock("same").write.lock(),
        one.client.lock("same").lock(),
      ];
      await world.pass(100);
      expect([inside.held, lease.held, wanted.aborted]).toEqual([true, true, true]);
      expect(await lock.forceUnlock()).toBe(true);
      await (await waiting).unlock();
      await world.pass(100);
      expect([inside.held, inside.signal.aborted, lease.held]).toEqual([true, false, false]);
      await inside.unlock();
      await Promise.all([reading, writing].map(async (writer) => (await writer).unlock()));
    }
  }),
);

test(
  "order: by place, without overtaking; readers at the head enter together",
  scene(async (world) => {
    const [holder, one, other, writer] = world.processes(4);
    const held = await holder.take("write");
    const inside: string[] = [];
    const enter = async (what: string, call: Promise<SceneLease>): Promise<void> => {
      const lease = await call;
      inside.push(what);
      await world.pass(50);
      await lease.unlock();
    };
    const all = [enter("reader", one.take("read"))];
    await world.pass(10);
    all.push(enter("reader", other.take("read")));
    await world.pass(10);
    all.push(enter("writer", writer.take("write")));
    await world.pass(10);
    all.push(enter("late reader", holder.take("read")));
    await world.pass(10);
    await held.unlock();
    await world.pass(20);
    expect(inside).toEqual(["reader", "reader"]);
    await Promise.all(all);
    expect(inside).toEqual(["reader", "reader", "writer", "late reader"]);
  }),
);

test(
  "late readers enter while no caller waits, and for 25 ms after a writer has begun to wait",
  scene(async (world) => {
    const [one, writer] = world.processes(2);
    const first = await one.take("read");
    const second = await one.take("read");
    const writing = writer.take("write");
    await world.pass(100);
    const late = one.take("read");
    await world.pass(100);
    await first.unlock();
    await second.unlock();
    await inTurn(world, writing, late);
    // Redis told its process 20 ms ago that no caller waits, and then 30 ms ago.
    const asked = await one.take("read");
    await world.pass(5);
    const again = writer.take("write");
    await world.pass(15);
    const soon = await one.tryTake("read");
    expect(soon?.held).toBe(true);
    await world.pass(10);
    expect(await one.tryTake("read")).toBeNull();
    await asked.unlock();
    await soon?.unlock();
    await inTurn(world, again);
  }),
);

test(
  "tryLock() without `wait` fails while another caller waits",
  scene(async (world) => {
    const [reader, writer, other] = world.processes(3);
    const held = await reader.take("read");
    const writing = writer.take("write");
    await world.pass(100);
    expect(await other.tryTake("read")).toBeNull();
    expect(await other.tryTake("write")).toBeNull();
    await held.unlock();
    await inTurn(world, writing);
  }),
);

test(
  "tokens grow with every writer; readers with no writer between them share one, above every earlier writer's",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const before = await one.take("write");
    await before.unlock();
    const [first, second] = [await one.take("read"), await other.take("read")];
    expect(first.token).toBe(second.token);
    expect(first.token).toBeGreaterThan(before.token);
    await first.unlock();
    await second.unlock();
    const after = await other.take("write");
    expect(after.token).toBeGreaterThan(first.token);
    await after.unlock();
  }),
);

test(
  "a reader's lease ends by itself, while others continue in the same hold",
  scene(async (world) => {
    const [one, writer] = world.processes(2);
    const long = await one.take("read");
    const short = await one.take("read", { lease: 21_000 });
    expect(world.redis.holds("rw:a")).toHaveLength(1);
    await world.pass(21_000);
    expect([short.held, long.held]).toEqual([false, true]);
    expect(await outcomeOf(short.unlock())).toEqual(["LOCK_LOST", "expired"]);
    const writing = writer.take("write");
    await world.pass(2 * L);
    await long.unlock();
    await inTurn(world, writing);
  }),
);

test(
  "a lost hold is lost for all its readers",
  scene(async (world) => {
    const [one] = world.processes(1);
    const readers = [await one.take("read"), await one.take("read")];
    world.redis.drop("rw:a");
    await world.pass(L / 3);
    for (const { lease } of readers) expect(lease.signal.reason).toMatchObject({ reason: "gone" });
    for (const reader of readers) expect(await outcomeOf(reader.unlock())).toEqual(["LOCK_LOST", "gone"]);
  }),
);

test(
  "the last reader's release leaves at the end of that turn: work that blocks the loop delays a writer",
  scene(async (world) => {
    const [one, writer] = world.processes(2);
    const readers = await Promise.all([one.take("read"), one.take("read")]);
    const unlocking = one.does(() => {
      const unlocked = readers.map((reader) => reader.unlock());
      one.block(2_000);
      return Promise.all(unlocked);
    });
    const { result, took } = await world.timed(writer.take("write"));
    expect(took).toBeGreaterThan(1_999);
    expect(took).toBeLessThan(2_010);
    await unlocking;
    await result.unlock();
  }),
);

test(
  "a reading process crashes: writers wait for the rest of its hold",
  scene(async (world) => {
    const [one, writer] = world.processes(2);
    await one.take("read");
    await one.take("read");
    const writing = writer.take("write");
    await world.pass(5_000);
    one.crash();
    const rest = world.redis.left("rw:a");
    const { result, took } = await world.timed(writing);
    expect(took).toBeGreaterThanOrEqual(rest - 1);
    expect(took).toBeLessThanOrEqual(rest + R);
    await result.unlock();
  }),
);

test(
  "a scope that writes goes on as a reader, with the writer's token and no writer in between",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    await one.scope(async () => {
      const writer = await one.take("write");
      const reader = await one.take("read");
      const writing = other.take("write");
      await world.pass(100);
      await writer.unlock();
      expect([reader.held, reader.token]).toEqual([true, writer.token]);
      await world.pass(100);
      await reader.unlock();
      await inTurn(world, writing);
    });
  }),
);

test(
  "the same, and Redis does not confirm it: unlock() rejects with LockUnavailableError",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    await one.scope(async () => {
      const writer = await one.take("write");
      const reader = await one.take("read");
      const writing = other.take("write");
      await world.pass(100);
      one.cutOff(6_000);
      expect(await outcomeOf(writer.unlock())).toEqual(["LOCK_UNAVAILABLE", undefined]);
      await world.pass(5_000);
      expect(reader.held).toBe(true);
      await reader.unlock();
      await (await writing).unlock();
    });
  }),
);

test(
  "forceUnlock() of `read`: all readers; of `write`: the writer",
  scene(async (world) => {
    const [one, other, admin] = world.processes(3);
    const { read, write } = admin.client.readWriteLock("rw:a");
    const readers = [await one.take("read"), await other.take("read")];
    expect([await read.isLocked(), await write.isLocked()]).toEqual([true, false]);
    await read.forceUnlock();
    await world.pass(1);
    for (const reader of readers) expect(await outcomeOf(reader.unlock())).toEqual(["LOCK_LOST", "revoked"]);
    const writer = await one.take("write");
    expect([await read.isLocked(), await write.isLocked()]).toEqual([false, true]);
    await write.forceUnlock();
    await world.pass(1);
    expect(await outcomeOf(writer.unlock())).toEqual(["LOCK_LOST", "revoked"]);
  }),
);

test(
  "a waiting reader and a waiting writer crash: they are skipped",
  scene(async (world) => {
    const [holder, reader, writer, last] = world.processes(4);
    const held = await holder.take("write");
    reader.take("read");
    await world.pass(20);
    writer.take("write");
    await world.pass(20);
    const waiting = last.take("read");
    await world.pass(20);
    reader.crash();
    writer.crash();
    await world.pass(20);
    await held.unlock();
    await inTurn(world, waiting);
  }),
);

test(
  "the message that admits a reader is lost in a reconnect: it finds its grant",
  scene(async (world) => {
    const [holder, reader] = world.processes(2);
    const held = await holder.take("write");
    const waiting = reader.take("read");
    await world.pass(100);
    const cut = holder.on("release").executed(() => reader.messages.cut());
    await held.unlock();
    await cut;
    const { result, took } = await world.timed(waiting);
    expect(took).toBeLessThan(100);
    await result.unlock();
  }),
);

test.each(["fair write", "write"] as const)(
  "%s: the reply to a release is lost, and the command comes again: not reported as lost",
  (kind) =>
    scene(async (world) => {
      const [holder, other] = world.processes(2);
      const { held, waiting } = await parked(world, holder, [other], { kind });
      const cut = holder.on("release").executed(() => holder.commands.cut());
      const unlocking = held.unlock();
      await cut;
      const next = await waiting[0];
      await holder.on("release").executed();
      await unlocking;
      await next.unlock();
    })(),
);

test(
  "inspect() of a lock whose Redis does not answer rejects with LOCK_UNAVAILABLE",
  scene(async (world) => {
    const [one] = world.processes(1);
    await (await one.take("read")).unlock();
    one.commands.freezeReplies(60_000);
    const seen = one.client.readWriteLock("a").inspect();
    const error: unknown = await seen.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE", lockName: "a" });
    expect((error as Error).message).toContain("it could not be inspected");
  }),
);

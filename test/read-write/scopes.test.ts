import { expect, it } from "vitest";
import type { Lease, LockClient, ReadWriteLock } from "../../src/index.ts";
import { Gate, record } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// What a scope that reads or writes may do besides: enter again, read what it writes, go on as a
// reader; and not write what it reads.

const own = new OwnServer();

const open = async (): Promise<{ locks: LockClient; mine: ReadWriteLock; theirs: ReadWriteLock }> => {
  const name = freshName();
  const [{ locks }, other] = [
    await own.parties.join({ url: own.url }),
    await own.parties.join({ url: own.url }),
  ];
  return { locks, mine: locks.readWriteLock(name), theirs: other.locks.readWriteLock(name) };
};
const waiting = (rw: ReadWriteLock, count: number): Promise<unknown> =>
  until(async () => (await rw.inspect()).waiters.length === count, { what: `${count} waiting` });
const upgrade = { code: "LOCK_UPGRADE" };

it("a scope that reads enters again, also while a writer waits, and its nested readers run side by side", async () => {
  const { mine, theirs } = await open();
  let write: Promise<Lease> | undefined;
  await mine.read.withLock(async (lease) => {
    write = theirs.write.lock();
    await waiting(theirs, 1);
    let inside = 0;
    const body = async (nested: Lease): Promise<void> => {
      expect(nested.token).toBe(lease.token);
      inside++;
      await until(() => inside === 2);
    };
    await Promise.all([mine.read.withLock(body), mine.read.withLock(body)]);
    expect([mine.read.isHeldHere(), mine.write.isHeldHere()]).toEqual([true, false]);
  });
  await (await write)?.unlock();
});

it("a scope that reads is refused at once when it wants to write, in every way", async () => {
  const { locks, mine, theirs } = await open();
  const beside = theirs.read;
  const held = await beside.lock();
  await mine.read.withLock(async () => {
    await expect(mine.write.lock()).rejects.toMatchObject(upgrade);
    await expect(mine.write.tryLock()).rejects.toMatchObject(upgrade);
    await expect(mine.write.withLock(() => {})).rejects.toMatchObject(upgrade);
    await expect(locks.multiLock([mine.write, "other"]).lock()).rejects.toMatchObject(upgrade);
    await expect(locks.readWriteLock(mine.name, { fair: true }).write.lock()).rejects.toMatchObject(upgrade);
    await mine.read.withLock(() => expect(mine.write.lock()).rejects.toMatchObject(upgrade));
  });
  await locks.scope(async () => {
    const lease = await mine.read.lock();
    await expect(mine.write.lock()).rejects.toMatchObject(upgrade);
    await lease.unlock();
    await held.unlock();
    await (await mine.write.lock()).unlock();
  });
  await locks.scope(async () => {
    // Both wait, and the reader comes first.
    const writer = await theirs.write.lock();
    const reads = mine.read.lock();
    await waiting(theirs, 1);
    const writes = expect(mine.write.lock()).rejects.toMatchObject(upgrade);
    await writer.unlock();
    await (await reads).unlock();
    await writes;
  });
});

it("a scope that writes reads without a command, one at a time, and may go on writing inside", async () => {
  const { locks, mine, theirs } = await open();
  await mine.write.withLock(async (writer) => {
    let inside = 0;
    const alone = async (nested: Lease): Promise<void> => {
      expect([nested.token, nested.held, ++inside]).toEqual([writer.token, true, 1]);
      await new Promise(setImmediate);
      inside--;
    };
    await Promise.all([mine.read.withLock(alone), mine.write.withLock(alone), mine.read.withLock(alone)]);
    await mine.read.withLock(() => mine.write.withLock(() => mine.read.withLock(() => {})));
    expect([mine.read.isHeldHere(), mine.write.isHeldHere()]).toEqual([true, true]);
    await locks.multiLock([mine.read]).withLock(() => expect(theirs.read.isLocked()).resolves.toBe(false));
    expect(await theirs.read.tryLock()).toBeNull();
  });
  expect(await theirs.inspect()).toMatchObject({ mode: null });
});

it("a writer that leaves first lets its scope go on as a reader, with no other writer in between", async () => {
  const { locks, mine, theirs } = await open();
  await locks.scope(async () => {
    const writer = await mine.write.lock();
    const again = await mine.write.lock();
    const reader = await mine.read.lock();
    const others = [theirs.read.lock(), theirs.read.lock()];
    await waiting(mine, 1);
    await writer.unlock();
    // Not before the last writer of the scope.
    expect(await mine.inspect()).toMatchObject({ mode: "write" });
    await again.unlock();
    const entered = await Promise.all(others);
    expect(entered.map(({ token }) => token)).toEqual([writer.token, writer.token]);
    expect([reader.held, reader.token]).toEqual([true, writer.token]);
    expect(await mine.inspect()).toMatchObject({ mode: "read", holders: [{}, {}] });
    await expect(mine.write.lock()).rejects.toMatchObject(upgrade);
    for (const one of entered) await one.unlock();
    // The others of this process come in as into any hold that readers share.
    const next = await locks.outside(() => mine.read.lock());
    expect((await mine.inspect()).holders).toHaveLength(1);
    await reader.unlock();
    expect(next.held).toBe(true);
    expect(await theirs.write.tryLock()).toBeNull();
    await next.unlock();
  });
  const last = await theirs.write.lock({ wait: 1_000 });
  await last.unlock();
});

it("a body that reads beside its writer, and stays longer, keeps other writers out, and these hand off locally again after it", async () => {
  const { locks, mine, theirs } = await open();
  let reading: Promise<void> | undefined;
  let token = 0;
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  await mine.write.withLock((writer) => {
    token = writer.token;
    reading = mine.read.withLock(async (lease) => {
      await ended;
      expect([lease.held, lease.token]).toEqual([true, token]);
    });
  });
  const writers = [theirs.write.lock()];
  await waiting(theirs, 1);
  writers.push(locks.outside(() => mine.write.lock()));
  await waiting(theirs, 2);
  expect(await theirs.inspect()).toMatchObject({ mode: "read" });
  end();
  await reading;
  for (const entering of writers) {
    const lease = await entering;
    expect(lease.token).toBeGreaterThan(token);
    await lease.unlock();
  }
});

it("after local hand-offs of a writer's hold the remaining readers have the present token", async () => {
  const { locks, mine, theirs } = await open();
  await (await mine.write.lock()).unlock();
  const first = await mine.write.lock();
  const second = locks.scope(async () => {
    const writer = await mine.write.lock();
    const reader = await mine.read.lock();
    await writer.unlock();
    const other = await theirs.read.lock();
    expect(writer.token).toBe(first.token + 1);
    expect([reader.token, other.token]).toEqual([writer.token, writer.token]);
    await other.unlock();
    await reader.unlock();
  });
  await first.unlock();
  await second;
});

it("the end of a scope ends the writer's lease, and its readers in other bodies go on; and the other way round", async () => {
  const { locks, mine, theirs } = await open();
  const told = record(locks);
  const gate = new Gate();
  let reading: Promise<boolean[]> | undefined;
  const writer = await locks.scope(async () => {
    const writer = await mine.write.lock();
    const inside = new Gate();
    reading = mine.read.withLock(async ({ signal, held }) => {
      inside.open();
      await gate.passed;
      return [held, signal.aborted];
    });
    await inside.passed;
    return writer;
  });
  expect([writer.held, writer.signal.reason]).toEqual([false, told.lost[0]?.error]);
  await expect(writer.unlock()).rejects.toMatchObject({ reason: "scope" });
  expect(await theirs.write.tryLock()).toBeNull(); // the reader is inside
  gate.open();
  expect(await reading).toEqual([true, false]);
  const { lease, reader } = await mine.write.withLock(async (lease) => {
    const reader = await locks.scope(() => mine.read.lock());
    expect([lease.held, lease.signal.aborted, await theirs.read.tryLock()]).toEqual([true, false, null]);
    return { lease, reader };
  });
  await expect(reader.unlock()).rejects.toMatchObject({ reason: "scope" });
  expect(lease.signal.aborted).toBe(false);
  // What reads in the time of a writer is a part of the writer's call, which has an end of its own.
  expect(told.lost).toMatchObject([{ kind: "write" }, { kind: "write", remains: true }]);
  expect(told.lost[0]).not.toHaveProperty("remains");
  expect(told.release.map(({ kind, call }) => [kind, call])).toEqual([["write", told.lost[1]?.call]]);
  await (await theirs.write.lock({ wait: 10_000 })).unlock();
});

it("a reader of another caller that outlives the body of a writer keeps its lease, as any other lease", async () => {
  const { mine, theirs } = await open();
  const reader = await mine.write.withLock(() => mine.read.lock());
  expect([reader.held, reader.signal.aborted, await theirs.write.tryLock()]).toEqual([true, false, null]);
  await reader.unlock();
  await (await theirs.write.lock({ wait: 10_000 })).unlock();
});

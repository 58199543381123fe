import { once } from "node:events";
import { expect, it, vi } from "vitest";
import type { ReadWriteLock } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { openReadWrite } from "./pairs.ts";

// Readers come into a hold of their process without a command for 25 ms. Here they may for so long
// that what ends it before must end it, and not that time.
vi.mock("../../src/defaults.ts", async (all) => ({ ...((await all()) as object), SHARE_TIME: 20_000 }));

const stage = new Stage();
/** What is taken for the first of these has to be raised for the second one, which is a question. */
const [SHORT, LONG] = [{ lease: 10_000 }, { lease: 60_000 }];

/** A read-write lock as two processes see it; `mine` has raised the lease of a hold once, by a question. */
async function open(): Promise<{ mine: ReadWriteLock; theirs: ReadWriteLock }> {
  const { mine, theirs } = await openReadWrite(stage);
  await mine.read.withLock(SHORT, () => stage.near.locks.outside(() => mine.read.withLock(LONG, () => {})));
  return { mine, theirs };
}
const waiting = (rw: ReadWriteLock, count: number): Promise<unknown> =>
  until(async () => (await rw.inspect()).waiters.length === count, { what: `${count} waiting` });
const slowly = (): void => stage.proxy.delay(200, { direction: "to client", which: "commands" });

it.each(["whether more may come in", "for a hold"])(
  "a writer that comes while its process asks %s is not overtaken by later readers",
  async (what) => {
    const { mine, theirs } = await open();
    const first = what === "for a hold" ? null : await mine.read.lock(SHORT);
    slowly();
    const asks = mine.read.lock(LONG);
    const write = mine.write.lock();
    await waiting(theirs, 1);
    // Redis was asked before the writer came, and says that nobody waits.
    const second = await asks;
    stage.proxy.delay(0);
    expect(await mine.read.tryLock(LONG)).toBeNull();
    await first?.unlock();
    await second.unlock();
    await (await write).unlock();
  },
);

it("an answer that is read after the end of its hold admits no reader, because it may concern a later grant", async () => {
  const { mine, theirs } = await open();
  const first = await mine.read.lock({ lease: 500 });
  const [before] = (await theirs.inspect()).holders;
  stage.proxy.delay(1_000, { direction: "to client", which: "commands" });
  const asks = mine.read.lock(LONG);
  await until(() => first.signal.aborted);
  const second = await asks;
  stage.proxy.delay(0);
  const { holders } = await theirs.inspect();
  expect(holders.map(({ id }) => id)).not.toEqual([before?.id]);
  await first.unlock().catch(() => {});
  await second.unlock();
});

it("successive readers leave others a turn of the event loop", async () => {
  const { mine } = await open();
  const first = await mine.read.lock();
  let hasTurned = false;
  setImmediate(() => {
    hasTurned = true;
  });
  const since = performance.now();
  while (!hasTurned && performance.now() < since + 3_000) await (await mine.read.lock()).unlock();
  expect(hasTurned).toBe(true);
  await first.unlock();
});

it("after a lost connection a reader asks Redis, because the server may have forgotten the hold", async () => {
  const { mine, theirs } = await open();
  const first = await mine.read.lock();
  const closed = once(stage.near.redis, "close");
  stage.proxy.cut("commands");
  await closed;
  await stage.far.redis.del(`holdfast:rw:{${mine.name}}`);
  const writer = await theirs.write.lock();
  expect(await mine.read.tryLock()).toBeNull();
  expect(first.held).toBe(false);
  await first.unlock().catch(() => {});
  await writer.unlock();
});

it("a hold that readers share is renewed once for all of them", async () => {
  const { locks } = await stage.join({ url: stage.proxy.url, client: { leaseTime: 1_500 } });
  const { read, name } = locks.readWriteLock(freshName());
  const readers = [await read.lock(), await read.lock(), await read.lock()];
  stage.proxy.record();
  /** How often each command names it. */
  const renewals = (): number[] =>
    stage.proxy.commands
      .map(({ command }) => command.filter((word) => word.includes(`{${name}}`)).length)
      .filter((count) => count > 0);
  await until(() => renewals().length > 0);
  expect(renewals()).toEqual(renewals().map(() => 1));
  for (const reader of readers) {
    expect(reader.held).toBe(true);
    await reader.unlock();
  }
});

// On a real Redis; in virtual time: test/world/directed/shared-holds.test.ts.

import { describe, expect, it } from "vitest";
import { connectionLua } from "../../src/redis/client-lua.generated.ts";
import { countedLua } from "../../src/redis/lua.generated.ts";
import { openReadWrite } from "../read-write/pairs.ts";
import { PoolStage } from "../semaphore/pooled.ts";
import { heldBody } from "../support/held-body.ts";
import { heard } from "../support/kept-reads.ts";
import { loadScripts } from "../support/load-scripts.ts";
import { waiting } from "../support/semaphores.ts";
import { until } from "../support/until.ts";

// Two callers of a process share a hold, and leave it one after the other while both commands are
// under way. The first caller's command runs after the one that ended the hold, or a second time.
// What it finds then says nothing about the time in which its caller was inside.

const stage = new PoolStage();
/** Explicit leases: no renewal comes in between. */
const LEASE = { lease: 20_000 };
/** One that ends long before its hold does. */
const SHORT = { ...LEASE, maxHold: 1_000 };

/** A hold that two callers of `near` share. */
interface Shared {
  /** A caller leaves, and does not end the hold. */
  first(): Promise<unknown>;
  /** The last one leaves, and ends it. */
  last(): Promise<unknown>;
  /** The last one's lease. */
  readonly lease: { readonly held: boolean };
  /** How many holds, or permits, Redis has. */
  count(): Promise<number>;
  readonly key: string;
}
type Scenario = (shared: Shared) => Promise<void>;
/** Makes a hold; `terms`: of its last caller. */
type MakeHold = (scenario: Scenario, terms?: { lease: number; maxHold?: number }) => Promise<void>;

const holds: Record<string, MakeHold> = {
  async "two permits"(scenario, terms = LEASE) {
    const pair = await stage.open(3);
    const held = await pair.theirs.acquire(3);
    const head = pair.mine.acquire();
    await waiting(pair.theirs, 1);
    const both = Promise.all([pair.mine.acquire(LEASE), pair.mine.acquire(terms)]);
    await held.release();
    const [first, last] = await both;
    await (await head).release();
    await scenario({
      first: () => first.release(),
      last: () => last.release(),
      lease: last,
      count: async () => (await pair.theirs.inspect()).used,
      key: `holdfast:semaphore:{${pair.mine.name}}`,
    });
  },

  async "two permits, one with `confirm`"(scenario, terms = LEASE) {
    const pair = await stage.open(3);
    const [{ run, isInside, leave }, held] = [heldBody(), await pair.theirs.acquire(3)];
    const head = pair.mine.acquire();
    await waiting(pair.theirs, 1);
    const done = pair.mine.withPermits(1, { ...LEASE, confirm: true }, run);
    const second = pair.mine.acquire(terms);
    await held.release();
    await isInside;
    const last = await second;
    await (await head).release();
    await scenario({
      first() {
        leave();
        return done;
      },
      last: () => last.release(),
      lease: last,
      count: async () => (await pair.theirs.inspect()).used,
      key: `holdfast:semaphore:{${pair.mine.name}}`,
    });
  },

  async "a scope's writer and its reader"(scenario, terms = LEASE) {
    const { mine, theirs } = await openReadWrite(stage);
    await stage.near.locks.scope(async () => {
      const [writer, reader] = [await mine.write.lock(LEASE), await mine.read.lock(terms)];
      await scenario({
        first: () => writer.unlock(),
        last: () => reader.unlock(),
        lease: reader,
        count: async () => (await theirs.inspect()).holders.length,
        key: `holdfast:rw:{${mine.name}}`,
      });
    });
  },

  async "a scope's reader with `confirm` and its writer"(scenario, terms = LEASE) {
    const { mine, theirs } = await openReadWrite(stage);
    await stage.near.locks.scope(async () => {
      const writer = await mine.write.lock(terms);
      const { run, isInside, leave } = heldBody();
      const done = mine.read.withLock({ ...LEASE, confirm: true }, run);
      await isInside;
      await scenario({
        first() {
          leave();
          return done;
        },
        last: () => writer.unlock(),
        lease: writer,
        count: async () => (await theirs.inspect()).holders.length,
        key: `holdfast:rw:{${mine.name}}`,
      });
    });
  },

  async "two readers, one with `confirm`"(scenario, terms = LEASE) {
    const { mine, theirs } = await openReadWrite(stage);
    const last = await mine.read.lock(terms);
    const { run, isInside, leave } = heldBody();
    const done = mine.read.withLock({ ...LEASE, confirm: true }, run);
    await isInside;
    expect((await theirs.inspect()).holders).toHaveLength(1);
    await scenario({
      first() {
        leave();
        return done;
      },
      last: () => last.unlock(),
      lease: last,
      count: async () => (await theirs.inspect()).holders.length,
      key: `holdfast:rw:{${mine.name}}`,
    });
  },
};

const refusals = async (): Promise<number> =>
  Number(/errorstat_NOSCRIPT:count=(\d+)/.exec(await stage.far.redis.info("errorstats"))?.[1] ?? 0);

/** What became of these calls: the code and reason of each one's error, or null. */
const outcomes = async (calls: readonly Promise<unknown>[]) =>
  (await Promise.allSettled(calls)).map((one) =>
    one.status === "fulfilled" ? null : [one.reason.code, one.reason.reason],
  );

/**
 * Redis does not know the script of the first caller's command, and then learns it: the hold ends
 * before the first command comes again, as text. `before`: before its end.
 */
async function unknownScript({ first, last, count }: Shared, before = async () => {}) {
  const { proxy, far } = stage;
  await far.redis.script("FLUSH");
  const refused = await refusals();
  proxy.record();
  proxy.holdReplies("commands");
  const calls = [first()];
  await until(async () => (await refusals()) > refused, { what: "the first command refused" });
  await loadScripts(far.redis, connectionLua, countedLua);
  await before();
  calls.push(last());
  await until(async () => (await count()) === 0, { what: "the hold ended" });
  proxy.thaw();
  const told = await outcomes(calls);
  // The precondition: the first command has come again.
  expect(proxy.commands.map(({ command }) => command[0])).toContain("eval");
  return told;
}

describe.each(Object.entries(holds))("%s", (_, hold) => {
  it("is not reported as lost when Redis learned the script of the first release in between", () =>
    hold(async (shared) => {
      const lost = heard(stage.near, "lost");
      expect([await unknownScript(shared), lost]).toEqual([[null, null], []]);
    }));

  it("is not reported as lost when the connection broke before the replies of both releases", () =>
    hold(async ({ first, last, count }) => {
      const lost = heard(stage.near, "lost");
      const { proxy } = stage;
      proxy.record();
      proxy.holdReplies("commands");
      const calls = [first()];
      // One after the other, as two callers leave.
      await until(() => proxy.commands.length > 0, { what: "the first command sent" });
      calls.push(last());
      await until(async () => (await count()) === 0, { what: "the hold ended" });
      proxy.cut("commands");
      proxy.thaw();
      expect([await outcomes(calls), lost]).toEqual([[null, null], []]);
    }));

  it("is reported as lost to both when its key was deleted", () =>
    hold(async (shared) => {
      const lost = heard(stage.near, "lost");
      const isLost = ["LOCK_LOST", "gone"];
      const told = await unknownScript(shared, async () => {
        await stage.far.redis.del(shared.key);
      });
      expect([told, lost.length]).toEqual([[isLost, isLost], 2]);
    }));

  it("is not reported as lost when the lease of the last caller ended in between, and it was withdrawn", () =>
    hold(async (shared) => {
      const lost = heard(stage.near, "lost");
      const ended = () => until(() => !shared.lease.held, { what: "the lease ended" });
      const [told] = await unknownScript({ ...shared, last: ended });
      expect([told, lost.map(({ error }) => error.reason)]).toEqual([null, ["expired"]]);
      await shared.last().catch(() => {});
    }, SHORT));

  it("is reported as lost to a caller that has left when its key was deleted, and the other one's lease ended", () =>
    hold(async ({ first, last, lease, key }) => {
      const lost = heard(stage.near, "lost");
      const { proxy, far } = stage;
      await far.redis.del(key);
      proxy.record();
      proxy.holdReplies("commands");
      const calls = [first()];
      await until(() => proxy.commands.length > 0, { what: "the first command sent" });
      const isWithdrawn = () => proxy.commands.some(({ command }) => command[1] === countedLua.leave.sha);
      await until(() => !lease.held && isWithdrawn(), { what: "the hold withdrawn" });
      proxy.thaw();
      expect(await outcomes(calls)).toEqual([["LOCK_LOST", "gone"]]);
      expect(lost.map(({ error }) => error.reason)).toEqual(["expired", "gone"]);
      await last().catch(() => {});
    }, SHORT));

  it("is reported as lost also to a caller that leaves in the turn in which the other one's loss is read", () =>
    hold(async ({ first, last, key }) => {
      const lost = heard(stage.near, "lost");
      const { proxy, far } = stage;
      const runs = async () => /cmdstat_evalsha:calls=(\d+)/.exec(await far.redis.info("commandstats"))?.[1];
      await far.redis.del(key);
      proxy.holdReplies("commands");
      const before = await runs();
      const calls = [first()];
      await until(async () => (await runs()) !== before, { what: "the first command executed" });
      // The reply can be read when the event loop turns, before what is sent at the end of that turn.
      await new Promise<void>((resolve) =>
        setImmediate(() => {
          proxy.thaw();
          calls.push(last());
          resolve();
        }),
      );
      const isLost = ["LOCK_LOST", "gone"];
      expect([await outcomes(calls), lost.length]).toEqual([[isLost, isLost], 2]);
    }));
});

it("a force-release that is read while a reader is joining is reported once", async () => {
  const { mine, theirs } = await openReadWrite(stage);
  const { near, proxy } = stage;
  const first = await mine.read.lock({ lease: 10_000 });
  const lost = heard(near, "lost");
  proxy.record();
  proxy.holdReplies("commands");
  // Its longer lease is asked for.
  const second = mine.read.lock({ lease: 60_000 });
  await until(() => proxy.commands.length > 0, { what: "the join sent" });
  await theirs.read.forceUnlock();
  await until(() => !first.held, { what: "the loss read" });
  proxy.thaw();
  await (await second).unlock();
  await near.redis.ping();
  expect(lost.map(({ error, call }) => [error.reason, call > 0])).toEqual([["revoked", true]]);
  await first.unlock().catch(() => {});
});

import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { PermitLease, Semaphore } from "../../src/index.ts";
import { used, waiting } from "../support/semaphores.ts";
import { turnOf } from "../support/turn.ts";
import { until } from "../support/until.ts";
import { PoolStage, together } from "./pooled.ts";

// Callers of one process at a semaphore: in which order they come in by a hold that they share, and
// what others are left.

const stage = new PoolStage();
const commandsOf = ({ name }: Semaphore): number =>
  stage.proxy.commands.filter(({ command }) => command.some((word) => word.includes(`{${name}}`))).length;

describe("callers of one process", () => {
  it("have one place for a hundred of them, and enter in order, each with a number of its own", async () => {
    const { mine, theirs } = await stage.open(5);
    const held = await theirs.acquire(5);
    stage.proxy.record();
    const order: number[] = [];
    const turns: number[] = [];
    let inside = 0;
    let most = 0;
    const all = Array.from({ length: 100 }, async (_, i) => {
      const lease = await mine.acquire();
      order.push(i);
      turns.push(turnOf(lease));
      most = Math.max(most, ++inside);
      await pause(1);
      inside--;
      await lease.release();
    });
    await waiting(theirs, 1);
    await held.release();
    await Promise.all(all);
    expect(order).toEqual(Array.from(all.keys()));
    expect(new Set(turns).size).toBe(100);
    expect(most).toBe(5);
    // An acquisition and a release for each would be two hundred.
    expect(commandsOf(mine)).toBeLessThan(150);
    // A place that nobody needed any more may have been granted at the end.
    await used(theirs, 0);
  });

  it("share a hold, with growing numbers, and give back what each leaves", async () => {
    const pair = await stage.open(6, { localHandoffs: 0 });
    const [, ...shared] = await together(pair, 6, [1, 1, 2, 1]);
    expect(new Set(shared.map(turnOf)).size).toBe(3);
    expect(shared.map(turnOf)).toEqual(shared.map(turnOf).sort((a, b) => a - b));
    const { holders } = await pair.theirs.inspect();
    expect(holders.map(({ units }) => units).sort()).toEqual([1, 4]);
    await shared[1]?.release();
    expect((await pair.theirs.inspect()).used).toBe(3);
    await (await pair.theirs.acquire(3)).release();
    await Promise.all([shared[0]?.release(), shared[2]?.release()]);
    expect((await pair.theirs.inspect()).used).toBe(1);
  });

  it("give back more than the remaining callers want", async () => {
    const { mine, theirs } = await stage.open(4);
    const held = await theirs.acquire(4);
    const leaving = new AbortController();
    const left = mine.acquire();
    await waiting(theirs, 1);
    const first = mine.acquire();
    const gone = [1, 2].map((units) => mine.acquire(units, { signal: leaving.signal }).catch(() => null));
    await held.release();
    await (await left).release();
    leaving.abort();
    await Promise.all(gone);
    const lease = await first;
    await used(theirs, 1);
    await lease.release();
  });

  it("with large requests are not overtaken by later small ones", async () => {
    const { mine, theirs } = await stage.open(3);
    const held = await Promise.all([1, 2, 3].map(() => mine.acquire()));
    const order: string[] = [];
    const enter = async (units: number, label: string): Promise<PermitLease> => {
      const lease = await mine.acquire(units);
      order.push(label);
      return lease;
    };
    const large = enter(3, "large");
    const small = enter(1, "small");
    await waiting(theirs, 1);
    for (const lease of held) await lease.release();
    await (await large).release();
    await (await small).release();
    expect(order).toEqual(["large", "small"]);
  });

  it("take a new place when the caller of the old one has gone, because the next may want less or more", async () => {
    const { mine, theirs } = await stage.open(4);
    const held = await theirs.acquire(2);
    for (const [first, second] of [
      [4, 1],
      [3, 4],
    ] as const) {
      const leaving = new AbortController();
      const gone = mine.acquire(first, { signal: leaving.signal }).catch(() => null);
      await waiting(theirs, 1);
      const next = mine.acquire(second);
      leaving.abort();
      await gone;
      if (second === 4) await held.release();
      const lease = await next;
      expect(lease.units).toBe(second);
      await lease.release();
    }
  });

  it("do not wait for a turn that they can have at once: a try beside waiting callers is answered", async () => {
    const { mine, theirs } = await stage.open(2);
    const held = await theirs.acquire(2);
    const waits = mine.acquire();
    await waiting(theirs, 1);
    expect(await mine.tryAcquire()).toBeNull();
    await held.release();
    const lease = await waits;
    const other = await mine.tryAcquire();
    expect(other?.held).toBe(true);
    await Promise.all([lease.release(), other?.release()]);
  });
});

describe("another process", () => {
  it("is not starved by a busy one: its turn comes after 16 local hand-offs or 25 ms", async () => {
    const { mine, theirs } = await stage.open(2);
    let isOver = false;
    let passes = 0;
    const busy = Array.from({ length: 6 }, async () => {
      while (!isOver) {
        const lease = await mine.acquire();
        passes++;
        await pause(0);
        await lease.release();
      }
    });
    await until(() => passes > 20);
    for (let turn = 0; turn < 5; turn++) {
      const before = passes;
      const lease = await theirs.acquire();
      // Two holds, and two by the place that stands before this one, each of which is passed 16
      // times; and what was on its way.
      expect(passes - before).toBeLessThan(4 * 17 + 12);
      await lease.release();
    }
    isOver = true;
    await Promise.all(busy);
  });

  it.each([
    ["25 ms if turns are long", {}, 40, ["mine", "theirs", "mine"]],
    ["each turn without local hand-offs", { localHandoffs: 0 }, 0, ["mine", "theirs", "mine"]],
  ] as const)("has its turn after %s", async (_, options, turn, expected) => {
    const { mine, theirs } = await stage.open(1, options);
    const { locks } = stage.far;
    const first = await locks.semaphore(mine.name, { permits: 1, fair: true }).acquire();
    const order: string[] = [];
    const enter = async (slots: Semaphore, label: string): Promise<void> => {
      const lease = await slots.acquire();
      order.push(label);
      await pause(turn);
      await lease.release();
    };
    const all = [enter(mine, "mine"), enter(mine, "mine")];
    await waiting(theirs, 1);
    all.push(enter(theirs, "theirs"));
    await waiting(theirs, 2);
    await first.release();
    await Promise.all(all);
    expect(order).toEqual(expected);
  });
});

it("fair: true queues each caller, and never hands off locally", async () => {
  const { mine, theirs } = await stage.open(1, { fair: true });
  const held = await theirs.acquire();
  const all = [mine.acquire(), mine.acquire(), mine.acquire()];
  await waiting(theirs, 3);
  await held.release();
  for (const one of all) await (await one).release();
  const wrong = (): Semaphore =>
    stage.near.locks.semaphore("x", { permits: 1, fair: true, localHandoffs: 3 });
  expect(wrong).toThrow(/with fair: true there are no local hand-offs/);
});

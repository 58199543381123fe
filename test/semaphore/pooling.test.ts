import { describe, expect, it } from "vitest";
import type { LockOptions, PermitLease, Semaphore } from "../../src/index.ts";
import { Dice } from "../chaos/dice.ts";
import { freshName } from "../support/fixture.ts";
import { Stage } from "../support/stage.ts";
import { named } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Callers of one process at a semaphore: what they share, in which order they come in, and what others are left.
// `mine` is behind a proxy, `theirs` is another process.

const stage = new Stage();
const SEED = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

interface Pair {
  readonly mine: Semaphore;
  readonly theirs: Semaphore;
}

/** Both have learned the rights of their connections, and hear messages. */
async function open(permits: number, options: { fair?: boolean; localPasses?: number } = {}): Promise<Pair> {
  const name = freshName();
  const [mine, theirs] = [stage.near, stage.far].map(({ locks }) =>
    locks.semaphore(name, { permits, ...options }),
  ) as [Semaphore, Semaphore];
  for (const [one, other] of [
    [mine, theirs],
    [theirs, mine],
  ] as const) {
    const held = await one.acquire(permits);
    const waits = other.acquire();
    await waiting(mine, 1);
    await held.unlock();
    await (await waits).unlock();
  }
  return { mine, theirs };
}

const waiting = (slots: Semaphore, count: number): Promise<unknown> =>
  until(async () => (await slots.inspect()).waiters.length === count, { what: `${count} waiting` });
const used = (slots: Semaphore, count: number): Promise<unknown> =>
  until(async () => (await slots.inspect()).used === count, { what: `${count} used` });
const commandsOf = ({ name }: Semaphore): number =>
  stage.proxy.commands.filter(({ command }) => command.some((word) => word.includes(`{${name}}`))).length;
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** `count` callers that come together while another process has all, and get so many units by one grant. */
async function together(
  { mine, theirs }: Pair,
  permits: number,
  each: number[],
  options: LockOptions = {},
): Promise<PermitLease[]> {
  const held = await theirs.acquire(permits);
  // Behind this one the others stand in line, and the next place is for all of them.
  const first = mine.acquire(each[0], options);
  await waiting(theirs, 1);
  const others = each.slice(1).map((units) => mine.acquire(units, options));
  await held.unlock();
  return Promise.all([first, ...others]);
}

describe("callers of one process", () => {
  it("a hundred of them have one place, and come in by it in order, each with a token of its own", async () => {
    const { mine, theirs } = await open(5);
    const held = await theirs.acquire(5);
    stage.proxy.record();
    const order: number[] = [];
    const tokens: number[] = [];
    let inside = 0;
    let most = 0;
    const all = Array.from({ length: 100 }, async (_, i) => {
      const lease = await mine.acquire();
      order.push(i);
      tokens.push(lease.token);
      most = Math.max(most, ++inside);
      await pause(1);
      inside--;
      await lease.unlock();
    });
    await waiting(theirs, 1);
    await held.unlock();
    await Promise.all(all);
    expect(order).toEqual(Array.from(all.keys()));
    expect(new Set(tokens).size).toBe(100);
    expect(most).toBe(5);
    // An acquisition and a release for each would be two hundred.
    expect(commandsOf(mine)).toBeLessThan(150);
    // A place that nobody needed any more may have been granted at the end.
    await used(theirs, 0);
  });

  it("share a hold, with tokens that grow, and what each leaves goes back", async () => {
    const pair = await open(6, { localPasses: 0 });
    const [, ...shared] = await together(pair, 6, [1, 1, 2, 1]);
    expect(new Set(shared.map(({ token }) => token)).size).toBe(3);
    expect(shared.map(({ token }) => token)).toEqual(shared.map(({ token }) => token).sort((a, b) => a - b));
    const { holders } = await pair.theirs.inspect();
    expect(holders.map(({ units }) => units).sort()).toEqual([1, 4]);
    await shared[1]?.unlock();
    expect((await pair.theirs.inspect()).used).toBe(3);
    await (await pair.theirs.acquire(3)).unlock();
    await Promise.all([shared[0]?.unlock(), shared[2]?.unlock()]);
    expect((await pair.theirs.inspect()).used).toBe(1);
  });

  it("give back what is more than those want who are left", async () => {
    const { mine, theirs } = await open(4);
    const held = await theirs.acquire(4);
    const leaving = new AbortController();
    const left = mine.acquire();
    await waiting(theirs, 1);
    const first = mine.acquire();
    const gone = [1, 2].map((units) => mine.acquire(units, { signal: leaving.signal }).catch(() => null));
    await held.unlock();
    await (await left).unlock();
    leaving.abort();
    await Promise.all(gone);
    const lease = await first;
    await used(theirs, 1);
    await lease.unlock();
  });

  it("that want more are not overtaken by those behind them, however little these want", async () => {
    const { mine, theirs } = await open(3);
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
    for (const lease of held) await lease.unlock();
    await (await large).unlock();
    await (await small).unlock();
    expect(order).toEqual(["large", "small"]);
  });

  it("take a new place when the one for which it stood has gone: the next may want less, or more", async () => {
    const { mine, theirs } = await open(4);
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
      if (second === 4) await held.unlock();
      const lease = await next;
      expect(lease.units).toBe(second);
      await lease.unlock();
    }
  });

  it("do not wait for a turn that they can have at once: a try beside those that wait is answered", async () => {
    const { mine, theirs } = await open(2);
    const held = await theirs.acquire(2);
    const waits = mine.acquire();
    await waiting(theirs, 1);
    expect(await mine.tryAcquire()).toBeNull();
    await held.unlock();
    const lease = await waits;
    const other = await mine.tryAcquire();
    expect(other?.held).toBe(true);
    await Promise.all([lease.unlock(), other?.unlock()]);
  });
});

describe("another process", () => {
  it("is not starved by a busy one: its turn comes after 16 passes or 25 ms", async () => {
    const { mine, theirs } = await open(2);
    let isOver = false;
    let passes = 0;
    const busy = Array.from({ length: 6 }, async () => {
      while (!isOver) {
        const lease = await mine.acquire();
        passes++;
        await pause(0);
        await lease.unlock();
      }
    });
    await until(() => passes > 20);
    for (let turn = 0; turn < 5; turn++) {
      const before = passes;
      const lease = await theirs.acquire();
      // Two holds, and two by the place that stands before this one, each of which is passed 16 times; and what was on its way.
      expect(passes - before).toBeLessThan(4 * 17 + 12);
      await lease.unlock();
    }
    isOver = true;
    await Promise.all(busy);
  });

  it.each([
    ["25 ms where turns are long", {}, 40, ["mine", "theirs", "mine"]],
    ["each turn without passes", { localPasses: 0 }, 0, ["mine", "theirs", "mine"]],
  ] as const)("has its turn behind %s", async (_, options, turn, expected) => {
    const { mine, theirs } = await open(1, options);
    const { locks } = stage.far;
    const first = await locks.semaphore(mine.name, { permits: 1, fair: true }).acquire();
    const order: string[] = [];
    const enter = async (slots: Semaphore, label: string): Promise<void> => {
      const lease = await slots.acquire();
      order.push(label);
      await pause(turn);
      await lease.unlock();
    };
    const all = [enter(mine, "mine"), enter(mine, "mine")];
    await waiting(theirs, 1);
    all.push(enter(theirs, "theirs"));
    await waiting(theirs, 2);
    await first.unlock();
    await Promise.all(all);
    expect(order).toEqual(expected);
  });
});

describe("a hold that is lost", () => {
  it("is lost for all its users, and for nobody else", async () => {
    const pair = await open(4);
    const [other, ...shared] = await together(pair, 4, [1, 1, 2]);
    const key = `holdfast:semaphore:{${pair.mine.name}}`;
    const fields = Object.entries(await stage.far.redis.hgetall(key));
    const field = fields.find(([hold, text]) => hold !== "=" && Number(text.slice(17, 24)) === 3);
    const signals = shared.map(({ signal }) => signal);
    await stage.far.redis.hdel(key, field?.[0] ?? "none");
    await expect(shared[0]?.extend(60_000)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect(other?.held).toBe(true);
    await other?.unlock();
    expect(await pair.theirs.inspect()).toMatchObject({ holders: [] });
  });

  it("by force is lost for all at once", async () => {
    const pair = await open(3);
    const all = await together(pair, 3, [1, 1, 1]);
    const signals = all.map(({ signal }) => signal);
    expect(await pair.theirs.forceUnlock({ label: "me" })).toBe(2);
    await until(() => signals.every(({ aborted }) => aborted));
    expect(signals[2]?.reason).toMatchObject({ reason: "revoked", by: "me" });
    for (const lease of all) await expect(lease.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });

  it("a user's own end takes nothing from the others, and what it had goes back", async () => {
    const pair = await open(3);
    const [first, second, third] = (await together(pair, 3, [1, 1, 1], { maxHold: 300 })) as [
      PermitLease,
      PermitLease,
      PermitLease,
    ];
    await first.unlock();
    await until(() => second.signal.aborted && third.signal.aborted);
    await used(pair.theirs, 0);
  });
});

it("what a caller has left goes back also where the command was lost: its caller is told, the others stay", async () => {
  const pair = await open(4, { localPasses: 0 });
  const [other, ...shared] = await together(pair, 4, [1, 1, 2]);
  const dropped = stage.proxy.dropCommand(named("evalsha"));
  const unlocked = shared[1]?.unlock().then(
    () => "released",
    (error: unknown) => (error as { code: unknown }).code,
  );
  await dropped;
  stage.proxy.cut("commands");
  expect(["released", "LOCK_UNAVAILABLE"]).toContain(await unlocked);
  await used(pair.theirs, 2);
  expect(shared[0]?.held).toBe(true);
  await shared[0]?.unlock();
  await other?.unlock();
});

describe("whatever callers do", () => {
  it(`there are never more inside than permits, and all come in (TEST_SEED=${SEED})`, async () => {
    const dice = new Dice(SEED);
    const PERMITS = 6;
    const { mine, theirs } = await open(PERMITS);
    let inside = 0;
    let most = 0;
    let served = 0;
    const tokens = new Set<number>();
    const caller = async (slots: Semaphore): Promise<void> => {
      for (let i = 0; i < 15; i++) {
        const units = dice.chance(0.7) ? 1 : dice.int(1, 5);
        const leaving = new AbortController();
        if (dice.chance(0.15)) setTimeout(() => leaving.abort("enough"), dice.int(0, 8));
        const wait = dice.pick([0, 3, 30_000, 30_000, 30_000]);
        const lease = dice.chance(0.1) ? dice.pick([60, 5_000]) : undefined;
        const held = await slots.tryAcquire(units, { wait, lease, signal: leaving.signal }).catch(() => null);
        if (!held) continue;
        if (!held.held) continue;
        inside += units;
        most = Math.max(most, inside);
        served++;
        expect(tokens.has(held.token)).toBe(false);
        tokens.add(held.token);
        // Now and then its time is over before it leaves.
        const late = lease === 60 && dice.chance(0.5);
        let isInside = true;
        const out = (): void => {
          if (isInside) inside -= units;
          isInside = false;
        };
        held.signal.addEventListener("abort", out);
        await pause(late ? 80 : dice.int(0, 2));
        out();
        await held.unlock().catch(() => {});
      }
    };
    await Promise.all([mine, theirs].flatMap((slots) => Array.from({ length: 10 }, () => caller(slots))));
    expect(most).toBeLessThanOrEqual(PERMITS);
    expect(served).toBeGreaterThan(150);
    await used(theirs, 0);
    expect(await theirs.inspect()).toMatchObject({ waiters: [] });
  });
});

it("fair: true has a place for each caller, and takes no passes", async () => {
  const { mine, theirs } = await open(1, { fair: true });
  const held = await theirs.acquire();
  const all = [mine.acquire(), mine.acquire(), mine.acquire()];
  await waiting(theirs, 3);
  await held.unlock();
  for (const one of all) await (await one).unlock();
  const wrong = (): Semaphore => stage.near.locks.semaphore("x", { permits: 1, fair: true, localPasses: 3 });
  expect(wrong).toThrow(/with fair: true nothing is passed on/);
});

import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { PermitLease, Semaphore } from "../../src/index.ts";
import { Dice } from "../chaos/dice.ts";
import { used } from "../support/semaphores.ts";
import { named } from "../support/tcp-proxy.ts";
import { turnOf } from "../support/turn.ts";
import { until } from "../support/until.ts";
import { PoolStage, together } from "./pooled.ts";

// A hold of several callers of one process that is lost, given back by halves, or used at random.

const stage = new PoolStage();
const SEED = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

describe("a hold that is lost", () => {
  it("is lost for all its users, and for no other caller", async () => {
    const pair = await stage.open(4);
    const [other, ...shared] = await together(pair, 4, [1, 1, 2]);
    const key = `holdfast:semaphore:{${pair.mine.name}}`;
    const fields = Object.entries(await stage.far.redis.hgetall(key));
    const field = fields.find(([hold, text]) => hold !== "=" && Number(text.slice(17, 24)) === 3);
    const signals = shared.map(({ signal }) => signal);
    await stage.far.redis.hdel(key, field?.[0] ?? "none");
    await expect(shared[0]?.extend(60_000)).rejects.toMatchObject({ code: "LOCK_LOST", reason: "gone" });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect(other?.held).toBe(true);
    await other?.release();
    expect(await pair.theirs.inspect()).toMatchObject({ holders: [] });
  });

  it("that a force-release ended is lost for all at once", async () => {
    const pair = await stage.open(3);
    const all = await together(pair, 3, [1, 1, 1]);
    const signals = all.map(({ signal }) => signal);
    expect(await pair.theirs.forceUnlock({ label: "me" })).toBe(2);
    await until(() => signals.every(({ aborted }) => aborted));
    expect(signals[2]?.reason).toMatchObject({ reason: "revoked", by: "me" });
    for (const lease of all) await expect(lease.release()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });

  it("ends for one user alone at that user's end, and its units go back", async () => {
    const pair = await stage.open(3);
    const [first, second, third] = (await together(pair, 3, [1, 1, 1], { maxHold: 300 })) as [
      PermitLease,
      PermitLease,
      PermitLease,
    ];
    await first.release();
    await until(() => second.signal.aborted && third.signal.aborted);
    await used(pair.theirs, 0);
  });
});

it("a lost command still gives back what a caller has left: its caller gets an error, the others stay", async () => {
  const pair = await stage.open(4, { localHandoffs: 0 });
  const [other, ...shared] = await together(pair, 4, [1, 1, 2]);
  const dropped = stage.proxy.dropCommand(named("evalsha"));
  const unlocked = shared[1]?.release().then(
    () => "released",
    (error: unknown) => (error as { code: unknown }).code,
  );
  await dropped;
  stage.proxy.cut("commands");
  expect(["released", "LOCK_UNAVAILABLE"]).toContain(await unlocked);
  await used(pair.theirs, 2);
  expect(shared[0]?.held).toBe(true);
  await shared[0]?.release();
  await other?.release();
});

describe("whatever callers do", () => {
  it(`never are more inside than permits, and all enter (TEST_SEED=${SEED})`, async () => {
    const dice = new Dice(SEED);
    const PERMITS = 6;
    const { mine, theirs } = await stage.open(PERMITS);
    let inside = 0;
    let most = 0;
    let served = 0;
    const turns = new Set<number>();
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
        expect(turns.has(turnOf(held))).toBe(false);
        turns.add(turnOf(held));
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
        await held.release().catch(() => {});
      }
    };
    await Promise.all([mine, theirs].flatMap((slots) => Array.from({ length: 10 }, () => caller(slots))));
    expect(most).toBeLessThanOrEqual(PERMITS);
    expect(served).toBeGreaterThan(150);
    await used(theirs, 0);
    expect(await theirs.inspect()).toMatchObject({ waiters: [] });
  });
});

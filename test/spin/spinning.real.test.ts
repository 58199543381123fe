// On a real Redis; in virtual time: test/world/directed/spinning.test.ts.

import { describe, expect, it } from "vitest";
import { SPIN_MAX, SPIN_REST } from "../../src/defaults.ts";
import { spinLock } from "../../src/spin.ts";
import { failure, Gate, watchTraffic } from "../contract/observe.ts";
import { countCommands } from "../support/command-count.ts";
import { freshName, type Party } from "../support/fixture.ts";
import { holdReply, onScript } from "../support/scripts-sent.ts";
import { until } from "../support/until.ts";
import { SpinStage } from "./stage.ts";

// How callers of spinLock wait; what it does as every lock is in spin-lock.contract.test.ts.

const stage = new SpinStage();
const { join, held } = stage;

/**
 * When a client sends a script, in ms from now. `answered`: is told when a reply was read, and may
 * hold it back.
 */
function watchTries({ redis }: Party, answered: (at: number) => unknown = () => {}): number[] {
  const tries: number[] = [];
  const start = performance.now();
  onScript(redis, (script, send) => {
    tries.push(performance.now() - start);
    holdReply(script, () => answered(performance.now() - start));
    send();
  });
  return tries;
}

/**
 * How many pauses between these tries belong to a beginning: they are 1 to 16 ms long, and the
 * longest never below 64.
 */
const shortPauses = (tries: readonly number[]): number =>
  tries.slice(1).filter((at, i) => at - (tries[i] ?? 0) < SPIN_MAX / 4).length;

/**
 * A pause may take longer than it was to, and no less: what must be seen is seen in one of these
 * rounds, if it is there.
 */
const ROUNDS = 10;

async function shown(round: () => Promise<boolean>): Promise<void> {
  for (let n = 0; n < ROUNDS; n++) if (await round()) return;
  throw new Error(`Not seen in ${ROUNDS} rounds`);
}

describe("waiting", () => {
  it("tries after 1, 2, 4 … 128 ms, and subscribes to nothing", async () => {
    const party = await join();
    const name = await held();
    const traffic = watchTraffic(party);
    const count = await countCommands(stage.other.redis);
    expect(await spinLock(party.locks, name).tryLock(3_000)).toBe(null);
    const { evalsha = 0, ...others } = await count.since();
    // The first try; 7 pauses of 1 to 64 ms, 127 ms at the most and half of it at the least; then
    // 64 to 128 ms each; the last try.
    expect(evalsha).toBeLessThanOrEqual(1 + 7 + Math.ceil((3_000 - 63) / 64) + 1);
    expect(evalsha).toBeGreaterThanOrEqual(8);
    expect(Object.keys(others).filter((command) => /subscribe|publish/.test(command))).toEqual([]);
    expect(traffic.connections).toBe(0);
  });

  it("tries once more at the end of the wait, whatever the pause", async () => {
    /** Without the cut, the last pause of 64 to 128 ms would end within these 15 ms one time in seven. */
    const triesAtTheEnd = async (): Promise<boolean> => {
      const party = await join();
      const name = await held();
      let read = 0;
      const tries = watchTries(party, (at) => {
        read = at;
      });
      expect(await spinLock(party.locks, name).tryLock(410)).toBe(null);
      return Math.max(read, tries.at(-1) ?? 0) >= 395;
    };
    // Six at a time: a busy machine may have no moment left for the last one.
    await shown(async () => (await Promise.all(Array.from({ length: 6 }, triesAtTheEnd))).every(Boolean));
  });

  it("spreads its pauses, so that two processes do not try in step", async () => {
    const [a, b] = [await join(), await join()];
    const name = await held();
    const tries = [a, b].map((party) => watchTries(party));
    expect(await Promise.all([a, b].map(({ locks }) => spinLock(locks, name).tryLock(2_500)))).toEqual([
      null,
      null,
    ]);
    for (const times of tries) {
      const pauses = times.slice(9, -1).map((at, i) => at - (times[8 + i] ?? 0));
      expect(pauses.length).toBeGreaterThan(5);
      expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(16); // of 64
    }
  });

  it("begins anew with short pauses for a caller that comes when none is waiting, also during a last try", () =>
    shown(async () => {
      const party = await join();
      const lock = spinLock(party.locks, await held());
      const gate = new Gate();
      const tries = watchTries(party, (at) => (at > 300 ? gate.passed : null));
      expect(await lock.tryLock(400)).toBe(null);
      const before = tries.length;
      const second = lock.tryLock(400);
      gate.open();
      expect(await second).toBe(null);
      return shortPauses(tries.slice(before)) >= 3;
    }));

  it("begins anew with short pauses after a turn", () =>
    shown(async () => {
      const party = await join();
      const name = await held();
      const lock = spinLock(party.locks, name);
      const tries = watchTries(party);
      const [first, second] = [lock.lock(), lock.lock()];
      await until(() => tries.length > 8); // the pauses are at their longest
      await stage.other.redis.del(name);
      const lease = await first;
      const start = performance.now();
      // For so long that it keeps off for the longest time, which is 64 ms at the least.
      await until(() => performance.now() - start > SPIN_MAX / SPIN_REST);
      await lease.unlock();
      // Had again by then: this process has stood still.
      const isTaken = await stage.other.redis.set(name, "somebody else", "PX", 60_000, "NX");
      const { length } = tries;
      if (isTaken) await until(() => tries.length > length + 5);
      const short = shortPauses(tries.slice(length));
      if (isTaken) await stage.other.redis.del(name);
      await (await second).unlock();
      return short >= 3;
    }));

  it("has one loop of tries for a hundred callers of one process", async () => {
    const { locks } = await join();
    const lock = spinLock(locks, await held());
    const count = await countCommands(stage.other.redis);
    await Promise.all(Array.from({ length: 100 }, () => lock.tryLock(500)));
    expect(await count.scripts()).toBeLessThanOrEqual(20);
  });

  it.each([0, 3])("gives a caller with %i ms the current state, not that of a pause ago", (wait) =>
    shown(async () => {
      const { locks } = await join();
      const lock = spinLock(locks, freshName("spin"));
      const first = await lock.lock();
      const began = performance.now();
      const second = lock.lock();
      // For so long that it keeps off for the longest time, which is 64 ms at the least.
      await until(() => performance.now() - began > SPIN_MAX / SPIN_REST);
      await first.unlock();
      const wasFree = (await stage.other.redis.exists(lock.name)) === 0;
      expect(await lock.tryLock({ wait })).toBeNull();
      expect(await stage.other.redis.exists(lock.name)).toBe(1); // the second has it
      await (await second).unlock();
      return wasFree;
    }),
  );

  it("tries once more for a caller that has less time than the pause", async () => {
    const party = await join();
    const lock = spinLock(party.locks, await held());
    const tries = watchTries(party);
    const patient = new AbortController();
    const waiting = failure(lock.lock({ signal: patient.signal }));
    await until(() => tries.length >= 10); // pauses of 64 ms and more
    const count = tries.length;
    await until(() => tries.length > count);
    const before = tries.length;
    expect(await lock.tryLock(40)).toBeNull();
    expect(tries.length).toBeGreaterThan(before);
    patient.abort("enough");
    expect(await waiting).toBe("enough");
  });

  it("stops trying when the last caller leaves", async () => {
    const party = await join();
    const controller = new AbortController();
    const waiter = failure(spinLock(party.locks, await held()).lock({ signal: controller.signal }));
    const tries = watchTries(party);
    await until(() => tries.length > 3);
    controller.abort();
    await waiter;
    await party.redis.ping();
    const { length } = tries;
    const start = performance.now();
    // the pause that was cut, if it were not, and another
    await until(() => performance.now() - start > 2 * SPIN_MAX);
    expect(tries.length).toBe(length);
  });

  it("hands the lock off inside the process, and subscribes to nothing for that", async () => {
    const party = await join();
    const traffic = watchTraffic(party);
    const lock = spinLock(party.locks, freshName("spin"));
    const first = await lock.lock();
    const waiting = Array.from({ length: 320 }, () => lock.withLock(() => {}));
    const [start, count] = [performance.now(), await countCommands(stage.other.redis)];
    await first.unlock();
    await Promise.all(waiting);
    // 16 passes, unless they take 25 ms.
    const turns = 320 / 16 + Math.ceil((performance.now() - start) / 25);
    expect(await count.scripts()).toBeLessThanOrEqual(2 * turns + 20);
    expect(traffic.connections).toBe(0);
  });
});

import { describe, expect, it } from "vitest";
import { LingerLearner } from "../../src/core/linger-learner.ts";

/** Always the middle of what is asked for: a try comes after as many calls as it does on average. */
const middle = (low: number, high: number): number => (low + high) / 2;
const learner = (most?: number): LingerLearner => new LingerLearner(most, middle);

/**
 * Kept and recalled without a use, by as many names as it takes for the client to expect nothing of
 * a new one.
 */
function disappointed(one = learner()): LingerLearner {
  for (let i = 0; i < 40; i++) one.ended(`of others ${i}`, "recalled", 0, 0);
  return one;
}

/**
 * How many of so many calls, each for a name of its own, would keep it. Each is wanted by somebody
 * else at once.
 */
function kept(one: LingerLearner, calls: number): number {
  let count = 0;
  for (let i = 0; i < calls; i++) {
    const name = `new ${i}`;
    if (!one.keeps(name, 0)) continue;
    count++;
    one.ended(name, "recalled", 0, 0);
  }
  return count;
}

describe("a new client", () => {
  it("caches its first names at once, and all names while no other process wants them", () => {
    const one = learner();
    for (let i = 0; i < 1_000; i++) {
      expect(one.keeps(`a ${i}`, i)).toBe(true);
      one.ended(`a ${i}`, "lapsed", 0, i);
    }
    expect(one.keeps("next", 1_000)).toBe(true);
  });

  it("learns after tens of acquisitions that others want every name, and then tries one in 32 at most", () => {
    const one = learner();
    expect(kept(one, 100)).toBeLessThanOrEqual(20);
    expect(kept(one, 100_000)).toBeLessThanOrEqual(100_000 / 32);
    expect(kept(one, 100_000)).toBeGreaterThan(100_000 / 2_048);
  });

  it("learns again within some thousand acquisitions if its names come back", () => {
    const one = disappointed();
    let calls = 0;
    for (let inARow = 0; inARow < 5 && calls < 10_000; calls++) {
      const isKept = one.keeps(`later ${calls}`, 0);
      if (isKept) one.keeps(`later ${calls}`, 0, 2); // it was taken again, twice
      inARow = isKept ? inARow + 1 : 0;
    }
    expect(calls).toBeLessThan(2_000);
  });
});

describe("a name", () => {
  it("rests for 1, 2, 4 … 30 s after recalls without a gain, and is not even tried meanwhile", () => {
    const one = learner();
    let at = 0;
    const rests: number[] = [];
    for (let i = 0; i < 7; i++) {
      one.ended("moved", "recalled", 0, at);
      // Others come back, so the client thinks well of names that it does not know.
      for (let j = 0; j < 5; j++) one.ended(`good ${i} ${j}`, "recalled", 16, at);
      const from = at;
      while (!one.keeps("moved", at)) at += 100;
      rests.push(at - from);
    }
    expect(rests).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });

  it("that many processes may cache at a time rests after every recall, for 1 s if it was worth it", () => {
    const one = learner();
    one.ended("a", "recalled", 64, 0, true);
    expect([one.keeps("a", 999), one.keeps("a", 1_000)]).toEqual([false, true]);
    one.ended("b", "recalled", 0, 0, true);
    one.ended("b", "wanted", 0, 1_000, true);
    expect([one.keeps("b", 2_999), one.keeps("b", 3_000)]).toEqual([false, true]);
  });

  it("is cached at once if it was worth it, whatever the client expects of others", () => {
    const one = disappointed();
    one.ended("own", "recalled", 5, 0);
    expect(kept(one, 1_000)).toBeLessThan(40);
    for (let i = 0; i < 100; i++) expect(one.keeps("own", 0)).toBe(true);
  });

  it("begins again with a rest of 1 s once it has been worth it", () => {
    const one = disappointed();
    for (let i = 0; i < 5; i++) one.ended("own", "recalled", 0, 0);
    one.ended("own", "recalled", 5, 0);
    while (one.keeps("own", 0)) one.ended("own", "recalled", 0, 0);
    for (let i = 0; i < 40; i++) one.ended(`good ${i}`, "recalled", 16, 0);
    expect(one.keeps("own", 999)).toBe(false);
    expect(one.keeps("own", 1_000)).toBe(true);
  });

  it("stays cached while it is used, and is known from its first use on, however long its time goes on", () => {
    const one = disappointed();
    expect(one.keeps("busy", 0, 1)).toBe(true);
    expect(one.keeps("busy", 0, 0)).toBe(false);
    expect(one.keeps("busy", 0, 2)).toBe(true);
    expect(one.keeps("busy", 0, 0)).toBe(true);
  });

  it("is learned also if its uses do not add up to whole pairs of commands", () => {
    const one = disappointed();
    for (const saved of [0.5, 1.5, 2.5]) expect(one.keeps("asked for", 0, saved)).toBe(true);
    expect(one.keeps("asked for", 0)).toBe(true);
  });

  it("that saves less each time than a recall costs is no longer cached, though it is acquired again", () => {
    const one = learner();
    let times = 0;
    for (; times < 100 && one.keeps("half", 0); times++)
      one.ended("half", "recalled", times % 2 === 0 ? 1 : 2, 0);
    expect(times).toBe(1);
    expect(one.keeps("half", 999)).toBe(false);
  });

  it("that another process has just had is cached only if it was worth it, and is not tried the next time", () => {
    const one = learner();
    expect(one.keeps("theirs", 0, 0, true)).toBe(false);
    expect(one.keeps("theirs", 0)).toBe(true);
    one.ended("ours", "recalled", 5, 0);
    expect(one.keeps("ours", 0, 0, true)).toBe(true);
    for (let i = 0; i < 40; i++) one.ended(`of others ${i}`, "recalled", 0, 0);
    const tried = Array.from({ length: 1_000 }, (_, i) => `new ${i}`).find((name) => one.keeps(name, 0));
    expect(one.keeps(tried as string, 0, 0, true)).toBe(false);
    expect(one.keeps(tried as string, 0)).toBe(false);
  });

  it("that was used a million times is given up after some recalls without a gain", () => {
    const one = disappointed();
    one.ended("moved", "recalled", 1_000_000, 0);
    let recalls = 0;
    for (; one.keeps("moved", 0); recalls++) one.ended("moved", "recalled", 0, 0);
    expect(recalls).toBeGreaterThan(3);
    expect(recalls).toBeLessThan(30);
  });

  it("that no other process wanted counts only in its favour", () => {
    const one = disappointed();
    one.ended("own", "recalled", 2, 0);
    for (const how of ["lapsed", "given up"] as const)
      for (let i = 0; i < 100; i++) one.ended("own", how, 0, 0);
    expect(one.keeps("own", 0)).toBe(true);
    one.ended("other", "given up", 2, 0);
    expect(one.keeps("other", 0)).toBe(true);
  });

  it("that could not be cached, because its callers hold it for long, rests as if it had been recalled", () => {
    const one = learner();
    expect(one.keeps("long", 0)).toBe(true);
    one.ended("long", "not kept", 0, 0);
    expect(one.keeps("long", 999)).toBe(false);
    expect(one.stats).toEqual({ kept: 0, takenAgain: 0, recalled: 0, recalledUnused: 0, lapsed: 0 });
  });

  it("that is tried is cached at its unlock too, and tried once", () => {
    const one = disappointed();
    const tried = Array.from({ length: 500 }, (_, i) => `new ${i}`).find((name) => one.keeps(name, 0));
    expect(tried).toBeDefined();
    expect(one.keeps(tried as string, 0)).toBe(true);
    one.ended(tried as string, "lapsed", 0, 0);
    expect(one.keeps(tried as string, 0)).toBe(false);
  });
});

describe("memory", () => {
  it("is limited to a number of names, the latest ones", () => {
    const one = disappointed(learner(100));
    for (let i = 0; i < 100; i++) one.ended(`good ${i}`, "recalled", 16, 0);
    expect(one.keeps("good 7", 0)).toBe(true);
    for (let i = 0; i < 99; i++) one.ended(`bad ${i}`, "recalled", 0, 0);
    expect(one.keeps("good 7", 0)).toBe(true);
    expect(one.keeps("good 8", 0)).toBe(false);
  });

  it("keeps nothing of names that are not cached", () => {
    const one = disappointed(learner(3));
    one.ended("own", "recalled", 5, 0);
    for (let i = 0; i < 10_000; i++) {
      one.keeps("own", 0);
      if (one.keeps(`new ${i}`, 0)) one.ended(`new ${i}`, "lapsed", 0, 0);
    }
    expect(one.keeps("own", 0)).toBe(true);
  });
});

describe("a quick return", () => {
  it("is expected of a new client's callers, and no longer if they do not return", () => {
    const one = learner();
    expect(one.comesBack("a")).toBe(true);
    one.passedBack("a", false);
    expect(one.comesBack("a")).toBe(false);
    expect(one.comesBack("b")).toBe(true);
    for (let i = 0; i < 40; i++) one.passedBack(`of others ${i}`, false);
    let tries = 0;
    for (let i = 0; i < 3_200; i++) if (one.comesBack(`new ${i}`)) tries++;
    expect(tries).toBeLessThanOrEqual(100);
    expect(tries).toBeGreaterThan(50);
  });

  it("is learned for each name", () => {
    const one = learner();
    for (let i = 0; i < 100; i++) {
      one.passedBack("loop", true);
      one.passedBack("request", false);
      one.passedBack("other", false);
    }
    expect([one.comesBack("loop"), one.comesBack("request")]).toEqual([true, false]);
    for (let i = 0; i < 4; i++) one.passedBack("loop", false);
    expect(one.comesBack("loop")).toBe(false);
    for (let i = 0; i < 4; i++) one.passedBack("loop", true);
    expect(one.comesBack("loop")).toBe(true);
  });
});

it("the client counts what became of cached locks", () => {
  const one = learner();
  one.ended("a", "recalled", 0, 0);
  one.ended("a", "recalled", 3, 0);
  one.ended("a", "lapsed", 1, 0);
  one.ended("a", "given up", 1, 0);
  expect(one.stats).toEqual({ kept: 0, takenAgain: 0, recalled: 2, recalledUnused: 1, lapsed: 1 });
});

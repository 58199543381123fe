import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { clocks } from "../../src/util/clock.ts";
import * as realTimers from "../../src/util/real-timers.ts";
import { time, whileTimePasses } from "./virtual-time.ts";

const passing = (work: () => Promise<void>) => () => whileTimePasses(work);

it(
  "a minute is over at once, on all clocks",
  passing(async () => {
    const before = [performance.now(), Date.now(), clocks.mono.now(), clocks.wall.now()];
    await sleep(60_000);
    const after = [performance.now(), Date.now(), clocks.mono.now(), clocks.wall.now()];
    for (const [i, now] of after.entries()) {
      const passed = now - (before[i] ?? 0);
      expect(passed).toBeGreaterThanOrEqual(60_000);
      expect(passed).toBeLessThan(60_002);
    }
  }),
);

it(
  "all that follows from an event without a timer happens before the next event",
  passing(async () => {
    const seen: string[] = [];
    setTimeout(() => {
      seen.push("timer");
      process.nextTick(async () => {
        for (let i = 0; i < 1_000; i++) await null;
        seen.push("microtasks");
      });
    }, 1);
    setTimeout(() => seen.push("next timer"), 3);
    await sleep(5);
    expect(seen).toEqual(["timer", "microtasks", "next timer"]);
  }),
);

it(
  "timers of every origin are virtual, less than 1 ms late, and can be cleared",
  passing(async () => {
    const seen: (readonly [string, number])[] = [];
    const start = time.now;
    const note = (what: string) => () => void seen.push([what, Math.floor(time.now - start)]);
    clearTimeout(setTimeout(note("cleared"), 1));
    realTimers.setTimeout(note("product's"), 20).unref();
    setTimeout(note("global"), 10.9);
    const interval = setInterval(note("interval"), 30);
    realTimers.setImmediate(note("immediate"));
    await nextTurn();
    await sleep(70);
    clearInterval(interval);
    await sleep(100);
    expect(seen.slice(0, 4)).toEqual([
      ["immediate", 0],
      ["global", 10],
      ["product's", 20],
      ["interval", 30],
    ]);
    expect(seen.slice(4)).toEqual([["interval", expect.any(Number)]]);
  }),
);

it(
  "a timer rings in the asynchronous context in which it was made, and in no other",
  passing(async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    await storage.run("the caller", async () => {
      setTimeout(() => seen.push(storage.getStore()), 1); // before the other one, however late
      time.after(2, () => seen.push(storage.getStore()));
      await sleep(5);
    });
    expect(seen).toEqual(["the caller", undefined]);
  }),
);

it("time stands still while no work asks for it", async () => {
  const seen: number[] = [];
  await whileTimePasses(async () => {
    setInterval(() => seen.push(time.now), 10);
    await sleep(100);
  });
  const { now } = time;
  const { length } = seen;
  // A message takes turns of the real event loop.
  const { port1, port2 } = new MessageChannel();
  const heard = new Promise((resolve) => port2.once("message", resolve));
  port1.postMessage("hello");
  await heard;
  port1.close();
  expect([time.now, seen.length]).toEqual([now, length]);
});

it("work that hangs is rejected", async () => {
  const hanging = whileTimePasses(() => new Promise(() => {}));
  await expect(hanging).rejects.toThrow("not over after 120000 ms of virtual time");
});

it("an id is not made twice", () => {
  const ids = Array.from({ length: 1_000 }, () => randomUUID());
  for (const id of ids) expect(id).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  expect(new Set(ids).size).toBe(1_000);
});

import { setImmediate } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { Cleanup } from "../../src/core/cleanup.ts";
import { Hold } from "../../src/core/lease/hold.ts";
import { Beginning } from "../../src/once/beginning.ts";
import { OnceScripts } from "../../src/once/once-scripts.ts";
import { clocks } from "../../src/util/clock.ts";
import { Timers } from "../../src/util/timers.ts";

it("a turn is withdrawn before its client is closed, while its replicas have not confirmed it", async () => {
  const log: string[] = [];
  const commands = {
    replyTimeout: 5_000,
    isAway: false,
    ended: false,
    mayHaveReached: () => true,
  } as never;
  const scripts = {
    protocol: "once",
    endOf: () => Number.POSITIVE_INFINITY,
    begin: async () => ({ is: "ours", at: 1, begin: 1, ttl: 30_000 }),
    confirm: () => {
      log.push("confirming");
      return new Promise(() => {});
    },
    withdraw: async () => {
      log.push("withdrawn");
      return "released";
    },
  } as never;
  const timers = new Timers(true);
  const cleanup = new Cleanup(commands, timers);
  const client = { commands, cleanup, isClosed: false };
  const interval = {
    every: 60_000,
    lease: 30_000,
    aligned: false,
    onCrash: "again",
    signal: undefined,
  } as const;
  const beginning = new Beginning(scripts, client, new Hold("h", "n"), interval, {
    answered: () => log.push("answered"),
    failed: () => log.push("failed"),
  });
  void beginning.begin();
  await setImmediate();
  beginning.aborted(new Error("closed"));
  await cleanup.end();
  log.push("closed");
  timers.close();
  expect(log).toEqual(["confirming", "withdrawn", "failed", "closed"]);
});

it("a query counts for the slot that has begun at the server, however little of that has passed", () => {
  const { mono } = clocks;
  onTestFinished(() => {
    clocks.mono = mono;
  });
  let time = 5;
  // Reading the clock takes a µs.
  clocks.mono = { now: () => (time += 0.001) };
  const every = 60_000;
  const begins = 1_790_000_000_000 - (1_790_000_000_000 % every);
  const interval = { every, lease: 10_000, aligned: true, onCrash: "again", signal: undefined } as const;
  const endAt = (ahead: number): number => {
    const commands = { timeAt: () => begins + ahead + (clocks.mono.now() - time), keys: { ofOnce: String } };
    return new OnceScripts(commands as never, null).endOf("job", interval, clocks.mono.now());
  };
  expect([endAt(-0.1), endAt(0.1), endAt(every - 1)]).toEqual([begins, begins + every, begins + every]);
});

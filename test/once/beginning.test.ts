import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { Cleanup } from "../../src/engine/cleanup.ts";
import { Hold } from "../../src/engine/lease/hold.ts";
import { Beginning } from "../../src/once/beginning.ts";
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

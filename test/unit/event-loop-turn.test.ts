import { setImmediate as turned } from "node:timers/promises";
import { expect, it } from "vitest";
import { atTurnEnd, isTurnSpent } from "../../src/core/event-loop-turn.ts";
import { TURNS_TIME } from "../../src/defaults.ts";

it("deferred work runs once, after the promises of this turn, in order", async () => {
  const told: string[] = [];
  const first = () => void told.push("first");
  atTurnEnd(first);
  atTurnEnd(() => void told.push("second"));
  atTurnEnd(first);
  await Promise.resolve();
  expect(told).toEqual([]);
  await turned();
  expect(told).toEqual(["first", "second"]);
});

it("a step that defers work defers it to the next turn", async () => {
  const told: string[] = [];
  atTurnEnd(() => {
    told.push("first");
    atTurnEnd(() => void told.push("next"));
  });
  await turned();
  expect(told).toEqual(["first"]);
  await turned();
  expect(told).toEqual(["first", "next"]);
});

it("a step that throws stops no other step", async () => {
  const told: string[] = [];
  const thrown = new Promise((resolve) => process.prependOnceListener("uncaughtException", resolve));
  const others = process.listeners("uncaughtException").slice(1);
  for (const other of others) process.off("uncaughtException", other);
  try {
    atTurnEnd(() => {
      throw new Error("planted");
    });
    atTurnEnd(() => void told.push("second"));
    expect(await thrown).toMatchObject({ message: "planted" });
    await turned();
    expect(told).toEqual(["second"]);
  } finally {
    for (const other of others) process.on("uncaughtException", other);
  }
});

it("a turn is used up after a time in which callers come and go, and the next one is new", async () => {
  await turned();
  const mono = performance.now();
  expect(isTurnSpent(mono)).toBe(false);
  expect(isTurnSpent(mono + TURNS_TIME / 2)).toBe(false);
  expect(isTurnSpent(mono + TURNS_TIME)).toBe(true);
  await turned();
  expect(isTurnSpent(mono + 2 * TURNS_TIME)).toBe(false);
});

import { expect, it } from "vitest";
import { CallRules } from "../../src/locks/arguments.ts";

// What `tryLock` was called with last is remembered, with what that asks for.

const newRules = () => new CallRules(30_000, undefined, {});
const tryLock = (rules: CallRules, ...args: unknown[]) => rules.tryLock(["x"], args);

it("calls with the same wait and lease share one set of rules", () => {
  const rules = newRules();
  const first = tryLock(rules, 10, 60);
  expect(first).toMatchObject({ wait: 10, explicit: 60, terms: { lease: 60, watchdog: false } });
  expect(tryLock(rules, 10, 60)).toBe(first);
});

it("a call that differs gets its own set of rules", () => {
  const rules = newRules();
  tryLock(rules, 10, 60);
  expect(tryLock(rules, 10)).toMatchObject({ wait: 10, explicit: null, terms: { lease: 30_000 } });
  expect(tryLock(rules, 20)).toMatchObject({ wait: 20, explicit: null });
  expect(tryLock(rules, 20, 60)).toMatchObject({ wait: 20, explicit: 60 });
  expect(tryLock(rules, { wait: 30 })).toMatchObject({ wait: 30, explicit: null });
  expect(tryLock(rules)).toMatchObject({ wait: 0, explicit: null });
});

it.each([
  [[10], ["10"]],
  [[10], [10, null]],
  [[10], [10, undefined, "SECONDS"]],
  [
    [10, 60],
    [10, "60"],
  ],
  [
    [10, 60],
    [10, 60, "SECONDS"],
  ],
  [[], [null]],
  [[], [undefined, undefined, "SECONDS"]],
])("after tryLock(%j) bad input is refused: tryLock(%j)", (good, bad) => {
  const rules = newRules();
  tryLock(rules, ...good);
  expect(() => tryLock(rules, ...bad)).toThrow("Cannot lock 'x': ");
  expect(() => tryLock(rules, ...bad)).toThrow("Cannot lock 'x': ");
});

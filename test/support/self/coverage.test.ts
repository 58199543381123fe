import { expect, it } from "vitest";
import type { Passage } from "../coverage.ts";
import { passageOf } from "../passage.ts";

const called = ({ functions }: Passage, name: string): number =>
  functions.reduce((sum, one) => sum + (one.name === name ? one.calls : 0), 0);

it("a measured passage knows which functions ran, how often, and in which files", async () => {
  const free = await passageOf("free");
  expect(called(free, "tryLock")).toBeGreaterThan(0);
  expect(called(free, "unlock")).toBe(1);
  expect(called(free, "createLockClient")).toBe(0);
  expect(called(free, "decodeMessage")).toBe(0);
  expect(free.functions.reduce((sum, { calls }) => sum + calls, 0)).toBe(free.calls);
  expect([...new Set(free.functions.map(({ file }) => file))]).toEqual(free.files);
  expect(free.functions.every(({ name }) => name !== "")).toBe(true);
});

it("a contended passage is that of a caller that parks and is granted the lock by a message", async () => {
  const contended = await passageOf("contended");
  expect(called(contended, "lock")).toBeGreaterThan(0);
  expect(called(contended, "unlock")).toBe(1);
  expect(called(contended, "decodeMessage")).toBe(1);
});

it("a passage is the same each time", async () => {
  expect(await passageOf("free")).toEqual(await passageOf("free"));
});

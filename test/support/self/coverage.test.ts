import { afterAll, beforeAll, expect, it } from "vitest";
import { type LocalServer, launchServer } from "../../../tools/redis/index.ts";
import { tryLockPassage } from "../passage.ts";

let server: LocalServer;

beforeAll(async () => {
  server = await launchServer();
});
afterAll(() => server.stop());

it("a measured passage knows which functions ran, how often, and in which files", async () => {
  const { files, entries, functions } = await tryLockPassage(server.url);
  const called = (name: string): number =>
    Object.entries(functions).reduce((sum, [at, count]) => sum + (at.endsWith(` ${name}`) ? count : 0), 0);
  expect(called("tryLock")).toBe(1);
  expect(called("unlock")).toBe(1);
  expect(called("createLockClient")).toBe(0);
  expect(Object.values(functions).reduce((sum, count) => sum + count, 0)).toBe(entries);
  expect(new Set(Object.keys(functions).map((at) => at.split(" ")[0]))).toEqual(new Set(files));
});

import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { Keys } from "../../src/redis/keys.ts";
import { electionLua, handoffLua } from "../../src/redis/lua.generated.ts";
import { openScriptServer, type ScriptServer } from "../support/script-server.ts";
import { until } from "../support/until.ts";

// The scripts of elections by themselves: the term is a hold of a lock that is handed off.

const { OWNER, MINE, GONE, TAKEN, RENEWED } = codes;
const keys = new Keys("", false).ofElection("x");
const NEWS = "news";

let server: ScriptServer;
const heard: string[] = [];
beforeAll(async () => {
  server = await openScriptServer();
  await server.listen([NEWS], (message) => void heard.push(message));
});
beforeEach(async () => {
  await server.redis.flushall();
  heard.length = 0;
});
afterAll(() => server.stop());

const hold = (number: number): string => `holdfast:client:a:${`${number}`.padStart(8, "0")}abcdefghijklm`;
const run = (script: keyof typeof electionLua, ...args: (string | number)[]): Promise<unknown> =>
  server.redis.eval(electionLua[script].lua, 2, keys.lock, keys.leader, ...args);
const { lock, queue, clients, clock } = keys;
const campaign = async (of: string): Promise<number> => {
  const args = [of, 30_000, Number.MAX_SAFE_INTEGER];
  return Number(await server.redis.eval(handoffLua.acquire.lua, 4, lock, queue, clients, clock, ...args));
};
const resign = (of: string, token: number): Promise<unknown> =>
  server.redis.eval(handoffLua.release.lua, 4, lock, queue, clients, clock, of, token);
const proclaim = (of: string, number: number, value: string): Promise<unknown> =>
  run("proclaim", of, number, "host:1:x", value, 60_000, NEWS);
const observe = async (): Promise<unknown> => run("observe");

it("observe shows a leader, with its term, after it has proclaimed itself and until its term ends", async () => {
  expect(await observe()).toEqual(["0", 0, 0, "", ""]);
  const term = await campaign(hold(1));
  expect(await observe()).toEqual([`${term}`, expect.anything(), 0, "", ""]);
  expect(await proclaim(hold(1), 1, "10.0.0.7 80")).toBe(OWNER);
  expect(await observe()).toEqual([`${term}`, expect.anything(), 1, "host:1:x 10.0.0.7 80", ""]);
  await resign(hold(1), term);
  expect(await observe()).toEqual(["0", 0, 0, "", ""]);
  const next = await campaign(hold(2));
  expect(await observe()).toEqual([`${next}`, expect.anything(), 0, "", ""]);
  await until(() => heard.length > 0);
  expect(heard).toEqual([`changed ${lock}`]);
});

it("observe returns a value as it was given", async () => {
  await campaign(hold(1));
  for (const [number, value] of ["", " ", "a\0b", "a\nb %d", "ü".repeat(200)].entries()) {
    await proclaim(hold(1), number + 1, value);
    expect(await observe()).toMatchObject([
      expect.anything(),
      expect.anything(),
      number + 1,
      `host:1:x ${value}`,
      "",
    ]);
  }
});

it("a late proclamation undoes no later one, and notifies no observer", async () => {
  await campaign(hold(1));
  await proclaim(hold(1), 1, "one");
  await proclaim(hold(1), 2, "two");
  expect(await proclaim(hold(1), 1, "one")).toBe(MINE);
  expect(await proclaim(hold(1), 2, "two")).toBe(MINE);
  expect(await observe()).toMatchObject([expect.anything(), expect.anything(), 2, "host:1:x two", ""]);
  await server.redis.publish(NEWS, "last");
  await until(() => heard.includes("last"));
  expect(heard).toHaveLength(3);
});

it("a proclamation after the end of its term does nothing, also in the next term", async () => {
  const term = await campaign(hold(1));
  await resign(hold(1), term);
  expect(await proclaim(hold(1), 1, "late")).toBe(GONE);
  await campaign(hold(2));
  await proclaim(hold(2), 1, "new");
  expect(await proclaim(hold(1), 7, "late")).toBe(TAKEN);
  expect(await observe()).toMatchObject([expect.anything(), expect.anything(), 1, "host:1:x new", ""]);
});

it("a renewal extends both keys, and says whether the proclamation still exists", async () => {
  await campaign(hold(1));
  expect(await run("renew", hold(1), 40_000, 80_000)).toEqual([RENEWED, 40_000, 0]);
  await proclaim(hold(1), 3, "here");
  expect(await run("renew", hold(1), 50_000, 100_000)).toEqual([RENEWED, 50_000, 3]);
  expect(await server.redis.pttl(keys.leader)).toBeGreaterThan(90_000);
  await run("renew", hold(1), 1_000, 1_000);
  expect(await server.redis.pttl(lock)).toBeGreaterThan(40_000);
  await server.redis.del(keys.leader);
  expect(await run("renew", hold(1), 50_000, 100_000)).toEqual([RENEWED, expect.anything(), 0]);
  expect(await run("renew", hold(2), 50_000, 100_000)).toEqual([TAKEN, 0, 0]);
  await server.redis.del(lock);
  expect(await run("renew", hold(1), 50_000, 100_000)).toEqual([GONE, 0, 0]);
});

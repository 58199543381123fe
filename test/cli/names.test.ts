import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { type LockEvents, LockTimeoutError } from "../../src/index.ts";
import { redissonLock } from "../../src/redisson.ts";
import { createLockUI } from "../../src/tools/ui/index.ts";
import { setScene, tellWaits, tellWaitTimes } from "../page/scene.ts";
import { CALLS, scenes, waitTimes } from "../page/shop.ts";
import { Cli } from "../support/cli.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// The same name means the same wherever a holder, a waiter or a lock is shown: src/api/party.ts has
// the table of all names.

const own = new OwnServer();
afterEach(() => Cli.endAll());

const source = readFileSync(new URL("../../src/api/party.ts", import.meta.url), "utf8");
/** The first cells of the table's rows. */
const NAMES = new Set(
  [...source.matchAll(/^ \* \| (`[^|]*)\|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name),
  ),
);
/** Names that something has shown, of all tests of this file. */
const seen = new Set<string>();

type Shape = (value: unknown) => boolean;
const isCount: Shape = (value) => Number.isInteger(value) && Number(value) >= 0;
const isTime: Shape = (value) => value === null || (typeof value === "number" && value >= 0);
const isText: Shape = (value) => value === null || typeof value === "string";
const has = (value: unknown, ...names: string[]): boolean =>
  typeof value === "object" && value !== null && names.every((name) => Object.hasOwn(value, name));
const isParty: Shape = (value) => has(value, "id", "label", "host", "pid");
const isList = (value: unknown, ...names: string[]): boolean =>
  Array.isArray(value) && value.every((one) => isParty(one) && has(one, ...names));

/** What a name may stand for, of those that have had another meaning somewhere. */
const SHAPES: Readonly<Record<string, Shape>> = {
  holder: (value) => value === null || isParty(value),
  holders: (value) => isList(value, "heldFor", "remaining", "token", "units", "mode"),
  waiters: (value) => value === null || isList(value, "waitedFor", "units", "mode"),
  heldFor: isTime,
  waitedFor: isTime,
  remaining: isTime,
  since: isTime,
  longest: isTime,
  token: isTime,
  units: isCount,
  waiting: isCount,
  waitingProcesses: isCount,
  holderCount: isCount,
  waitedLocks: isCount,
  mode: (value) => value === null || value === "read" || value === "write",
  kind: (value) => typeof value === "string",
  kept: (value) => typeof value === "boolean",
  message: isText,
};

/** What is wrong with the names in it: none of the table's, or with another meaning. */
function wrongIn(value: unknown, path = "$"): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => wrongIn(one, `${path}[]`));
  if (typeof value !== "object" || value === null || value instanceof Error) return [];
  return Object.entries(value).flatMap(([name, one]) => {
    seen.add(name);
    const at = `${path}.${name}`;
    if (!NAMES.has(name)) return [`${at} is not in the table`];
    const shape = SHAPES[name];
    return shape && !shape(one) ? [`${at} is something else: ${JSON.stringify(one)}`] : wrongIn(one, at);
  });
}

const expectNames = (value: unknown, what: string) => expect([...new Set(wrongIn(value))], what).toEqual([]);

/** One of each kind, held and waited for. */
async function busy() {
  await own.admin.flushall();
  const { locks } = await own.parties.join({ url: own.url, client: { label: "nightly" } });
  const { locks: others } = await own.parties.join({ url: own.url, client: { label: "daily" } });
  const name = freshName();
  const java = redissonLock(locks, freshName());
  const pair = locks.readWriteLock(name);
  const slots = locks.semaphore(name, { permits: 3 });
  const leases = await Promise.all([
    locks.lock(name).lock(),
    pair.read.lock(),
    slots.acquire(2),
    java.lock(),
  ]);
  const term = await locks.election(name).campaign({ value: "here" });
  const enough = new AbortController();
  const { signal } = enough;
  const waits = [
    others.lock(name).lock({ signal }),
    others.readWriteLock(name).write.lock({ signal }),
    others.semaphore(name, { permits: 3 }).acquire(2, { signal }),
  ].map((wait) => wait.catch(() => {}));
  const isWaited = async () => {
    const [lock, both, permits] = await Promise.all([
      locks.lock(name).inspect(),
      pair.inspect(),
      slots.inspect(),
    ]);
    return [lock, both, permits].every(({ waiters }) => waiters?.length === 1);
  };
  await until(isWaited);
  const end = async () => {
    enough.abort();
    await Promise.all(waits);
    for (const lease of leases) await lease[Symbol.asyncDispose]().catch(() => {});
    await term.resign().catch(() => {});
  };
  return { locks, others, name, java, end };
}

it("the test reads the table of names, and finds names that are not in it", () => {
  expect(NAMES.size).toBeGreaterThan(20);
  for (const name of Object.keys(SHAPES)) expect(NAMES).toContain(name);
  expect(wrongIn({ holders: 3, holder: { id: "a" }, lease: [{ nobody: 1 }] })).toHaveLength(3);
});

it("inspect(), list(), elections, errors and events use only names of the table", async () => {
  const { locks, others, name, java, end } = await busy();
  const looks = [locks.lock(name), others.lock(name), locks.readWriteLock(name), locks.semaphore(name), java];
  for (const one of looks) expectNames(await one.inspect(), "inspect()");
  for (const kind of ["lock", "readWrite", "semaphore", "election", "remember", "redisson"] as const)
    for await (const one of locks.list({ kind })) expectNames(one, "list()");
  expectNames(await locks.election(name).leader(), "leader()");
  const error = await others
    .lock(name)
    .lock({ wait: 1 })
    .catch((error: unknown) => error);
  expect(error).toBeInstanceOf(LockTimeoutError);
  const { holder, heldBy } = error as LockTimeoutError;
  expectNames({ holder, heldBy }, "LockTimeoutError");

  const told: object[] = [];
  const kinds = ["acquire", "wait", "giveup", "release", "renew", "lost"] as const;
  const tell: LockEvents[(typeof kinds)[number]] = (event: object) => void told.push(event);
  for (const kind of kinds) others.on(kind, tell);
  await others.lock(name).tryLock();
  const other = freshName();
  const lease = await others.lock(other).lock();
  await lease.unlock();
  const lost = await others.lock(other).lock();
  await locks.lock(other).forceUnlock();
  await lost.unlock().catch(() => {});
  await until(() => told.length >= 5);
  expectNames(told, "events");
  await end();
});

describe("the page", () => {
  it("uses only names of the table in each view", async () => {
    await own.admin.flushall();
    const { redis, locks } = await own.parties.join({ url: own.url });
    const ui = createLockUI({ locks, redis, authorize: () => true, actions: ["recall", "break"] });
    onTestFinished(() => ui.close());
    await setScene(own.admin, scenes);
    await tellWaitTimes(own.admin, waitTimes, CALLS);
    const state = async (query: string) => {
      const answer = await ui.fetch(new Request(`http://localhost/?part=state&${query}`));
      return (await answer.json()) as Record<string, unknown[]>;
    };
    expectNames(await state("view=now"), "now");
    const one = await state("view=lock&kind=lock&name=order:4711");
    expect([one.holders?.length, one.waiters?.length, one.reported?.length]).toEqual([1, 4, 4]);
    expectNames(one, "lock");
    const waited = await state("view=wait-times");
    expect(waited.waitTimes?.length).toBeGreaterThan(3);
    expectNames(waited, "wait-times");
    // Callers say that they wait, and say it again after they were seen.
    const blocked = await until(async () => {
      await tellWaits(own.admin, ["account:1", "account:2"], 7_000);
      const shown = await state("view=blocked");
      return shown.circles?.length && shown;
    });
    expect(blocked.clients?.length).toBeGreaterThan(1);
    expectNames(blocked, "blocked");
    // A viewer who stays: without one the page notices no restart.
    await ui.fetch(new Request("http://localhost/?part=events&view=now"));
    await own.server.restart();
    const restarted = await until(async () => {
      const shown = await state("view=now");
      return shown.restart && shown;
    });
    expectNames(restarted, "restart");
  });

  it("uses only names of the table in the answer to an action", async () => {
    const { name, end } = await busy();
    const { redis, locks } = await own.parties.join({ url: own.url });
    const ui = createLockUI({ locks, redis, authorize: () => true, actions: ["recall"] });
    onTestFinished(() => ui.close());
    const headers = {
      "content-type": "application/json",
      "x-holdfast": "page",
      origin: "http://localhost",
      host: "localhost",
    };
    const holder = (await locks.lock(name).inspect()).holder?.id;
    const body = JSON.stringify({ action: "recall", kind: "lock", name, holder, mode: null });
    const answer = await ui.fetch(
      new Request("http://localhost/?part=act", { method: "POST", headers, body }),
    );
    const done = await answer.json();
    expect(done).toMatchObject({ done: false });
    expectNames(done, "recall");
    await end();
  });
});

describe("the command line's --json", () => {
  const lines = (text: string): unknown[] =>
    text
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line));
  const told = async (...args: string[]) => {
    const { stdout, stderr } = await new Cli(own.url, args).finished;
    const all = [...lines(stdout), ...lines(stderr)];
    expect(all.length, args.join(" ")).toBeGreaterThan(0);
    return all;
  };

  it("uses only names of the table in commands that inspect or repair", async () => {
    const { name, end } = await busy();
    for (const args of [
      ["ls", "--json"],
      ["ls", "--json", "--sort", "name"],
      ["ls", "--json", "--kind", "redisson"],
      ["top", "--json"],
      ["inspect", "--json", name],
      ["recall", "--json", name],
      ["doctor", "--json"],
      ["inspect", "--json"],
      ["break", "--json", "--yes", "--kind", "lock", name],
    ])
      expectNames(await told(...args), args.join(" "));
    await end();
  });

  it("uses only names of the table in commands that run a command", async () => {
    const { name, end } = await busy();
    const free = freshName();
    for (const args of [
      ["run", "--json", free, "--", "true"],
      ["run", "--json", "--every", "1h", free, "--", "true"],
      ["run", "--json", "--no-wait", name, "--", "true"],
      ["run", "--json", "--slots", "2", free, "--", "true"],
      ["elect", "--json", free, "--", "true"],
    ])
      expectNames(await told(...args), args.join(" "));
    const observer = new Cli(own.url, ["elect", "--observe", "--json", name]);
    await observer.says("here");
    expectNames(lines(observer.stdout), "elect --observe");
    const page = new Cli(own.url, ["ui", "--json", "--port", "0"]);
    await page.says("\n");
    expectNames(lines(page.stdout), "ui");
    for (const { child } of [observer, page]) child.kill("SIGTERM");
    await end();
  });
});

it("every name of the table is used somewhere", () => {
  expect([...NAMES].filter((name) => !seen.has(name))).toEqual([]);
});

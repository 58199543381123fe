import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import { Actor } from "../support/actor.ts";
import { type Target, type WriterName, writers } from "../support/fenced-writers.ts";
import { freshName, Parties, type Party, testUrl } from "../support/fixture.ts";
import { noPostgres, Postgres } from "../support/postgres.ts";
import { until } from "../support/until.ts";

// The holder of the articles: it looks that it holds the lock, stops before its write for longer
// than its lease, and writes when it goes on. The next holder has written meanwhile. Careless
// writes show that this does go wrong.

/** Each test waits for its end, all at the same time. */
const LEASE = 3_000;
const parties = new Parties();
let here: Party;
let postgres: Postgres | undefined;

beforeAll(async () => {
  here = await parties.join();
  if (noPostgres) return;
  postgres = await Postgres.launch();
  const table =
    "CREATE TABLE orders (id text PRIMARY KEY, status text NOT NULL, fence bigint NOT NULL DEFAULT 0)";
  await (await postgres.connect()).query(table);
});
afterAll(async () => {
  await parties.close();
  await postgres?.stop();
});

/** Where this writer writes, how that is read, and how it is removed. */
async function targetOf(how: WriterName, { skip }: TestContext) {
  const name = freshName();
  if (!how.startsWith("UPDATE")) {
    const target: Target = { name };
    return {
      target,
      read: () => here.redis.get(name),
      remove: () => here.redis.del(name, `holdfast:fence:${name}`),
    };
  }
  if (!postgres) return skip(noPostgres);
  const client = await postgres.connect();
  await client.query("INSERT INTO orders (id, status) VALUES ($1, 'new')", [name]);
  const target: Target = { name, postgres: postgres.env };
  const read = async () =>
    (await client.query("SELECT status FROM orders WHERE id = $1", [name])).rows[0].status;
  return { target, read, remove: () => client.end() };
}

const isStopped = (pid: number) =>
  execFileSync("ps", ["-o", "state=", "-p", `${pid}`], { encoding: "utf8" }).startsWith("T");

/** What the resource holds in the end, and what became of the late write. */
async function story(how: WriterName, context: TestContext): Promise<{ value: string; late: unknown }> {
  const { target, read, remove } = await targetOf(how, context);
  const lock = freshName();
  const actor = await Actor.start({ url: testUrl() });
  try {
    const first = await actor.call("acquire", "lock", lock, 0, LEASE);
    if (!first) throw new Error("not acquired");
    const late = actor.call("writeAfterStop", first.handle, how, target, "first").then(
      () => "written",
      (error: unknown) => error,
    );
    await until(() => isStopped(actor.pid), { what: "the holder to be stopped" });
    const second = await here.locks.lock(lock).lock();
    expect(second.token).toBeGreaterThan(first.token);
    await writers[how](here.redis, target, "second", second.token);
    expect(await read()).toBe("second");
    actor.kill("SIGCONT");
    const outcome = await late;
    expect(second.held).toBe(true);
    await second.unlock();
    return { value: await read(), late: outcome };
  } finally {
    actor.kill();
    await actor.exit;
    await remove();
  }
}

describe.concurrent("the late write of a holder that was suspended", () => {
  for (const how of ["fencedSet", "fencedEval", "UPDATE with a fence"] as const)
    it(`is refused by ${how}`, async (context) => {
      const { value, late } = await story(how, context);
      expect([value, late]).toEqual(["second", expect.objectContaining({ code: "STALE_TOKEN" })]);
    });

  for (const how of ["SET", "EVAL", "UPDATE"] as const)
    it(`succeeds with ${how} alone`, async (context) => {
      expect(await story(how, context)).toEqual({ value: "first", late: "written" });
    });
});

import { describe, expect, it, onTestFinished } from "vitest";
import { observe } from "../../src/tools/ui/index.ts";
import { rights } from "../support/documented-rights.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { serverIs } from "../support/server-version.ts";
import { until } from "../support/until.ts";

// The page and `observe()` with exactly the rights of docs/operating.md.

const own = new OwnServer();

/** A connection of a user with these rules. */
async function as(rules: readonly string[]) {
  const user = await own.addUser(...rules);
  await own.admin.call("ACL", "LOG", "RESET");
  // No PING, which is no right of theirs.
  return (await own.parties.join({ url: own.url, redis: { ...user, lazyConnect: true } })).redis;
}
const denied = async () => JSON.stringify(await own.admin.call("ACL", "LOG"));

/**
 * A page of this user, and what a view of it shows. `notes`: of the connection that reads the notes
 * of callers.
 */
async function page(rules: readonly string[], notes = rules) {
  const served = await servePage(await as(rules), { redis: await as(notes) });
  onTestFinished(() => served.stop());
  return async (view: string) =>
    (await fetch(`${served.url}?part=state&view=${view}`)).json() as Promise<object>;
}

/** A call that waits in vain, of a client that this user tells of. */
async function waitObserved(rules: readonly string[]): Promise<string> {
  const { locks } = await own.parties.join({ url: own.url });
  onTestFinished(observe(locks, await as(rules)));
  const name = freshName();
  await using _ = await locks.lock(name).lock();
  await locks.outside(() => locks.lock(name).tryLock(20));
  return name;
}

describe("the documented rights", () => {
  it("are enough for the page, and for a process that reports its waits", async () => {
    await own.admin.flushall();
    const state = await page(rights.page);
    const name = await waitObserved(rights.observed);
    const { locks } = await own.parties.join({ url: own.url });
    await using _ = await locks.lock(name).lock();
    await until(() => own.admin.exists("holdfast:observed"));
    await until(async () => (await own.admin.pttl("holdfast:observed")) > 0);
    await until(async () => JSON.stringify(await state("wait-times")).includes(name));
    expect(await state("now")).toMatchObject({ trouble: null, locks: [{ name }] });
    expect(await denied()).toBe("[]");
  });

  const without = (use: "page" | "observed", right: string) => {
    const left = rights[use].filter((rule) => rule !== `+${right}`);
    expect(left).toHaveLength(rights[use].length - 1);
    return left;
  };
  it.skipIf(!serverIs("7.0")).each([
    ["trouble", "scan"],
    ["untold", "xrange"],
    ["untold", "time"],
  ])("the page shows in %s that it lacks %s", async (where, right) => {
    const state = await page(without("page", right));
    expect(await state("now")).toMatchObject({ [where]: expect.stringMatching(new RegExp(right, "i")) });
  });

  it("the page goes on without the right to INFO, and does not know how full Redis is", async () => {
    await own.admin.config("SET", "maxmemory", "100gb");
    onTestFinished(async () => void (await own.admin.config("SET", "maxmemory", "0")));
    const calm = { trouble: null, unread: null, restart: null };
    const [all, less] = [await page(rights.page), await page(without("page", "info"))];
    expect(await all("now")).toMatchObject({ ...calm, memory: 0 });
    expect(await less("now")).toMatchObject({ ...calm, memory: null });
    expect(await denied()).toContain('"info"');
  });

  it("the locks are shown without the right to the deadlock notes, and without deadlocks", async () => {
    await own.admin.flushall();
    const { locks } = await own.parties.join({ url: own.url });
    const name = freshName();
    await using _ = await locks.lock(name).lock();
    const left = rights.page.flatMap((rule) =>
      rule === "~holdfast:*" ? ["~holdfast:{*", "~holdfast:observed"] : rule,
    );
    const known = { trouble: null, deadlocks: null };
    const state = await page(rights.page, left);
    expect(await state("now")).toMatchObject({ ...known, locks: [{ name }] });
    expect(await state("blocked")).toMatchObject({
      ...known,
      circles: null,
      unread: expect.stringMatching(/NOPERM/),
    });
    const all = await page(rights.page);
    expect(await all("now")).toMatchObject({ trouble: null, deadlocks: 0, unread: null });
    await own.admin.set("holdfast:waits", "x");
    const spoilt = await page(rights.page);
    expect(await spoilt("now")).toMatchObject({
      ...known,
      locks: [{ name }],
      unread: expect.stringMatching(/WRONGTYPE/),
    });
    await own.admin.del("holdfast:waits");
    const notes = Array.from({ length: 1_000 }, (_, i) => [0, `handoff:${i} 1 x/1 handoff:a`]);
    await own.admin.zadd("holdfast:waits", ...notes.flat());
    const cut = await page(rights.page);
    expect(await cut("now")).toMatchObject({ ...known, unread: expect.stringMatching(/1000 notes/) });
  });

  it.each(["xadd", "pexpire"])("observe needs %s", async (right) => {
    await waitObserved(without("observed", right));
    await until(async () => (await denied()).includes(`"${right}"`));
  });
});

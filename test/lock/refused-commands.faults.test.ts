import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { linkOf } from "../support/link.ts";
import { staysQuiet } from "../support/quiet.ts";
import { until } from "../support/until.ts";

// The server refuses one command, or one key holds something else. A server of its own for these tests.

const parties = new Parties();
staysQuiet();
let server: LocalServer;
let a: Party;
let b: Party;
let name: string;

const join = (client = {}): Promise<Party> => parties.join({ url: server.url, client });
const waiters = async (): Promise<number> => (await a.locks.lock(name).inspect()).waiters?.length ?? 0;
const queued = (count: number): Promise<unknown> =>
  until(async () => (await waiters()) === count, { what: `${count} queued` });

beforeAll(async () => {
  server = await launchServer();
});
beforeEach(async () => {
  [a, b, name] = [await join(), await join(), freshName()];
});
afterAll(async () => {
  await parties.close();
  await server.stop();
});

describe("a command that is refused", () => {
  it("MULTI on the shared connection is explained", async () => {
    await linkOf(a.redis).command(["MULTI"]);
    await expect(a.locks.lock(name).tryLock()).rejects.toThrow(/inside MULTI.*connection: "own"/s);
    await linkOf(a.redis).command(["DISCARD"]);
  });

  it("a subscriber that AUTH refuses: its caller queues without it at once, and not only after SUBSCRIBE times out", async () => {
    await a.redis.acl("SETUSER", "moved", "on", ">old", "~*", "&*", "+@all");
    const moved = await parties.join({ url: server.url, redis: { username: "moved", password: "old" } });
    moved.locks.on("error", () => {}); // NO_MESSAGES
    await a.redis.acl("SETUSER", "moved", "resetpass", ">new");
    const held = await a.locks.lock(name).lock();
    const since = performance.now();
    const waiting = moved.locks.lock(name).lock();
    await queued(1);
    expect(performance.now() - since).toBeLessThan(2_500); // else after replyTimeout, 5 s
    await held.unlock();
    await (await waiting).unlock();
  });

  it("PUBLISH refused by an ACL from now on: the count proves nothing, and the lock is still handed on", async () => {
    await a.redis.acl("SETUSER", "quiet", "on", "nopass", "~*", "&*", "+@all");
    const quiet = await parties.join({ url: server.url, redis: { username: "quiet", password: "any" } });
    const held = await quiet.locks.lock(name).lock();
    await a.redis.acl("SETUSER", "quiet", "-publish");
    const waiting = b.locks.lock(name).lock();
    await queued(1);
    await held.unlock();
    await (await waiting).unlock(); // no message: a re-check finds it
  });
});

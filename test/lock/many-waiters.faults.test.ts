import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { codes } from "../../src/redis/codes.generated.ts";
import { handoffLua as lua } from "../../src/redis/lua.generated.ts";
import { redissonLock } from "../../src/redisson.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { staysQuiet } from "../support/quiet.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Many waiters, lost subscriptions, commands given up: what waiting costs, and whose place is kept.

const parties = new Parties();
staysQuiet();
let server: LocalServer;
let a: Party;
let b: Party;
let name: string;

const waiters = async (): Promise<number> => (await a.locks.lock(name).inspect()).waiters?.length ?? 0;

beforeAll(async () => {
  server = await launchServer();
});
beforeEach(async () => {
  [a, b, name] = [
    await parties.join({ url: server.url }),
    await parties.join({ url: server.url }),
    freshName(),
  ];
});
afterAll(async () => {
  await parties.close();
  await server.stop();
});

describe("a lost subscription", () => {
  it("does not cost the place in the queue: a re-check without a channel keeps the entry, and the receiver count proves nothing", async () => {
    const held = await a.locks.lock(name).lock();
    const waiting = b.locks.lock(name).lock();
    await until(async () => (await waiters()) === 1);
    const lock = new Onlooker(a.redis, name);
    const [entry = ""] = await a.redis.zrange(lock.keys.queue, 0, "0");
    const [before, patience] = [await lock.counts(), await lock.patience()];
    const { keys } = lock;
    const args = [`${entry.split(" ")[3]}`, 30_000, 8, entry, 9_000, "0"];
    const looked = await a.redis.eval(
      lua.recheck.lua,
      4,
      keys.lock,
      keys.queue,
      keys.clients,
      keys.clock,
      ...args,
    );
    expect(looked).toMatchObject([codes.HELD, expect.any(Number), expect.any(Number), 0, 0]);
    expect([before, await lock.counts()]).toEqual([true, false]);
    expect(await lock.patience()).toBeGreaterThan(patience + 4_000);
    await held.unlock();
    await (await waiting).unlock();
  });

  it("redissonLock: no channel stays subscribed after its waiters left early", async () => {
    const held = await Promise.all(
      Array.from({ length: 20 }, () => redissonLock(a.locks, freshName("r")).lock()),
    );
    await Promise.all(held.map((lease) => redissonLock(b.locks, lease.name).tryLock(2)));
    const left = async (): Promise<unknown[]> =>
      (await a.redis.pubsub("CHANNELS", "redisson_lock__channel*")) as unknown[];
    await until(async () => (await left()).length === 0, { what: "all channels to be unsubscribed" });
    await Promise.all(held.map((lease) => lease.unlock()));
  });
});

describe("one lock among many", () => {
  it("an abandoned acquire is not evaluated after the server has forgotten the script", async () => {
    const proxy = await TcpProxy.start(server);
    const far = await parties.join({ url: proxy.url, client: { replyTimeout: 300 } });
    await a.redis.script("FLUSH");
    await a.redis.script("LOAD", lua.leave.lua);
    proxy.freeze();
    const began = performance.now();
    await expect(far.locks.lock(name).tryLock()).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await until(() => performance.now() > began + 600, { what: "the time of the command to be over" });
    proxy.record();
    proxy.thaw();
    const sent = (): unknown[] => proxy.commands.map(({ command }) => command[0]);
    await until(() => sent().filter((one) => one === "evalsha").length >= 2, { what: "both late commands" });
    await far.redis.ping();
    expect(sent()).not.toContain("eval");
    expect(await a.redis.exists(`holdfast:{${name}}`)).toBe(0);
    await proxy.stop();
  });
});

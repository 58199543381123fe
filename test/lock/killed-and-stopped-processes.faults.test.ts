import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Actor } from "../support/actor.ts";
import { block } from "../support/block.ts";
import { onNodeRedis } from "../support/carrier.ts";
import { freshName, Parties, type Party, testUrl } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { OwnServer } from "../support/own-server.ts";
import { timedAwake } from "../support/stage.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Real processes, killed, stopped and blocked. Time bounds are a third, or less, of what the
// failure would take.

const parties = new Parties();
let here: Party;

beforeAll(async () => {
  here = await parties.join();
});
afterAll(parties.close);

/** Resolves when so many wait in the queue in Redis. */
const queued = (name: string, count: number): Promise<unknown> =>
  new Onlooker(here.redis, name).queued(count);

const addressOf = (url: string): { host: string; port: number } => {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
};

describe("a waiter at the head of the queue", () => {
  it("killed with SIGKILL costs no caller a window", async () => {
    const name = freshName();
    const held = await here.locks.lock(name).lock();
    const actor = await Actor.start({ url: testUrl() });
    const dying = actor.call("acquire", "lock", name, 60_000).catch(() => "dead");
    await queued(name, 1);
    const next = (await parties.join()).locks.lock(name).lock();
    await queued(name, 2);
    actor.kill("SIGKILL");
    await actor.exit;
    expect(await dying).toBe("dead");
    await held.unlock();
    const [lease, waited] = await timedAwake(next);
    expect(waited).toBeLessThan(900); // a window is 3 s, a re-check 1.1 s at the least
    await lease.unlock();
  });
});

describe("a holder", () => {
  it("stopped past its lease knows of its loss in its first statement, and its signal aborts", async () => {
    const name = freshName();
    const actor = await Actor.start({ url: testUrl() });
    const granted = await actor.call("acquire", "lock", name, 0, 700);
    if (!granted) throw new Error("not acquired");
    await actor.call("watchStop", granted.handle);
    actor.kill("SIGSTOP");
    const lease = await here.locks.lock(name).lock(); // somebody else has it now
    expect(lease.token).toBeGreaterThan(granted.token);
    actor.kill("SIGCONT");
    const report = await until(() => actor.call("stopReport", granted.handle), {
      what: "the report of the stop",
    });
    expect(report).toEqual({ heldAfterStop: false, abortedSoon: true });
    await lease.unlock();
    await actor.end();
  });
});

describe("a process that blocks its event loop for longer than the time of a first command", () => {
  // Theirs alone: a free lock's first command has 500 ms, in which the scripts of other tests may come first.
  const own = new OwnServer();
  const join = () => own.parties.join({ url: own.url });

  it("reads the answers that came meanwhile before it gives up", async () => {
    const name = freshName();
    const { locks } = await join();
    const [one, other] = [locks.lock(name), (await join()).locks.lock(name)];
    const several = locks.multiLock([freshName(), freshName()]);
    for (const lock of [one, several]) await (await lock.lock()).unlock(); // the server knows the scripts
    const [first, all] = [one.tryLock(), several.tryLock()];
    block(1_000);
    const [lease, leases] = await Promise.all([first, all]);
    expect([lease?.held, leases?.held]).toEqual([true, true]);
    const refused = other.tryLock();
    block(1_000);
    expect(await refused).toBeNull();
    await Promise.all([lease?.unlock(), leases?.unlock()]);
  });

  it("gets its answer too if replies came together and its command had to wait for the block", async () => {
    const { locks } = await join();
    const both = [locks.lock(freshName()), locks.lock(freshName())];
    const later = locks.lock(freshName());
    const leases = await Promise.all(both.map((lock) => lock.lock()));
    const asked = later.tryLock();
    block(700);
    expect(await asked).not.toBeNull();
    await Promise.all(leases.map((lease) => lease.unlock()));
  });

  it("gets its answer too if another caller's command carried its own after the block", async () => {
    const proxy = await TcpProxy.start(addressOf(own.url));
    const far = await own.parties.join({ url: proxy.url });
    proxy.delay(5);
    const call = async (blocks: boolean): Promise<boolean> => {
      const lease = await far.locks.lock(freshName()).lock();
      const asked = far.locks.lock(freshName()).tryLock();
      if (blocks) block(700);
      const later = await asked;
      await Promise.all([lease.unlock(), later?.unlock()]);
      return later !== null;
    };
    // Two replies must come by one read.
    for (let round = 0; round < 4; round++)
      expect(await Promise.all([call(true), call(false)])).toEqual([true, true]);
    await proxy.stop();
  });

  // node-redis writes in the next turn of the event loop, which does not come.
  it.skipIf(onNodeRedis)(
    "has sent the release just before it blocks: another process has the lock meanwhile",
    async () => {
      const name = freshName();
      const lease = await here.locks.lock(name).lock();
      const actor = await Actor.start({ url: testUrl() });
      const next = actor.call("acquire", "lock", name, 60_000, 60_000);
      await queued(name, 1);
      const released = lease.unlock();
      block(2_000);
      const { remaining } = await here.locks.lock(name).inspect();
      // Its own lease has run for a while. A grant that came only now would still be the window of 3 s.
      expect(remaining).toBeGreaterThan(10_000);
      expect(remaining).toBeLessThan(59_000);
      await released;
      expect((await next)?.token).toBeGreaterThan(lease.token);
      await actor.end();
    },
  );
});

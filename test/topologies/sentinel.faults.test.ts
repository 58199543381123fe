import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Lock, LockClientOptions } from "../../src/index.ts";
import { onNodeRedis } from "../support/carrier.ts";
import { compiled } from "../support/compiled.ts";
import { Duet } from "../support/duet.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import type { ConnectOptions } from "../support/servers/connection.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// The primary is replaced while a lock is held and waited for: with the lock's keys, and without them.

staysQuiet();
let group: SentinelGroup;
let duet: Duet;

/** By default ioredis gives up a command after 3 s of tries, and a failover may take longer. */
const PATIENT = { maxRetriesPerRequest: null };

beforeAll(async () => {
  group = await SentinelGroup.launch();
});
beforeEach(async () => {
  duet = await Duet.of(() => group.connect(PATIENT));
});
afterEach(async () => {
  await duet.end();
  await group.restore();
});
afterAll(() => group.stop());

describe.each([
  ["the primary is killed", () => group.killPrimary()],
  ["SENTINEL FAILOVER", () => group.failover()],
])("%s", (_, failOver) => {
  it("with the keys: the holder keeps the lock, the waiter its place", async ({ annotate }) => {
    const { holder } = duet;
    const { held, waiting } = await duet.begin(await group.adminOf());
    const { took } = await failOver();
    expect([held.held, held.signal.aborted]).toEqual([true, false]);
    await until(() => holder.redis.status === "ready");
    const { unlocking, waited } = await duet.handOn(held, waiting);
    await annotate(
      `failover ${Math.round(took)} ms; unlock ${unlocking} ms, the waiter has it ${waited} ms later`,
    );
  }, 60_000);

  it("an unlock and a call while there is no primary: both settle, one way or the other, and the lock goes on", async ({
    annotate,
  }) => {
    const { holder } = duet;
    const { held, waiting } = await duet.begin(await group.adminOf());
    const failed = failOver();
    await until(() => holder.redis.status !== "ready", { what: "the connection to break", timeout: 30_000 });
    const call = timed(
      holder.locks
        .lock(freshName())
        .tryLock()
        .catch((error: unknown) => error),
    );
    const [outcome, took] = await timed(held.unlock().catch((error: unknown) => error));
    const [called, calling] = await call;
    const [next, waited] = await timed(waiting);
    await annotate(
      `unlock() ${took} ms (${outcome}), a call ${calling} ms (${called}), waiter ${waited} ms later`,
    );
    if (outcome !== undefined)
      expect(outcome).toMatchObject({ code: expect.stringMatching(/^LOCK_(UNAVAILABLE|LOST)$/) });
    expect(took).toBeLessThan(3 * 5_000);
    expect(next.held).toBe(true);
    await next.unlock();
    await failed;
    await duet.expectMessages();
  }, 60_000);
});

// Its connections stay open: nothing tells a client that the group has another primary now. Options of
// ioredis decide what follows; node-redis.faults.test.ts has the same for node-redis.
describe.skipIf(onNodeRedis)("the primary is only suspended, and a replica is promoted", () => {
  /**
   * A client whose primary stands still during `body`; `promoted` resolves when another one has
   * taken over.
   */
  const frozen = async (
    { redis, client }: { redis?: ConnectOptions; client?: LockClientOptions },
    body: (party: Party, lock: Lock, promoted: () => Promise<void>) => Promise<void>,
  ): Promise<void> => {
    const parties = new Parties();
    const party = await parties.join({
      connect: () => group.connect(redis),
      client: { replyTimeout: 1_000, ...client },
    });
    const lock = party.locks.lock(freshName());
    await (await lock.lock()).unlock();
    const primary = await group.primary();
    primary.suspend();
    try {
      await body(party, lock, async () => {
        await until(async () => (await group.primary()) !== primary, { what: "a replica to be promoted" });
      });
    } finally {
      primary.resume();
      await parties.close();
    }
  };

  it.each([
    ["failoverDetector: true", { redis: { failoverDetector: true } }],
    ["socketTimeout", { redis: { socketTimeout: 1_000 } }],
    ['connection: "own"', { client: { connection: "own" } }],
  ] as const)("with %s the lock goes on at the new primary", (_, options) =>
    frozen(options, async (_party, lock, promoted) => {
      await promoted();
      const lease = await until(() => lock.tryLock(1_000).catch(() => null));
      await lease.unlock();
    }),
  );

  it("on a shared connection without them every call fails in time, until the connection is closed", () =>
    frozen({}, async ({ redis }, lock, promoted) => {
      await promoted();
      for (const call of [() => lock.lock(), () => lock.tryLock(), () => lock.inspect()]) {
        const [error, took] = await timed(call().catch((error: unknown) => error));
        expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
        expect(took).toBeLessThan(3 * 5_000);
      }
      expect(redis.status).toBe("ready");
      redis.disconnect(true);
      const lease = await until(() => lock.tryLock(1_000).catch(() => null));
      await lease.unlock();
    }));
});

describe.each(["ioredis", "ioredis5"])("%s with failoverDetector: true", (library) => {
  const program = compiled(`
    import { Redis } from "${library}";
    import { createLockClient } from "./src/index.ts";
    const redis = new Redis(JSON.parse(process.argv[2]));
    const lock = createLockClient(redis).lock("over");
    const lease = await lock.lock();
    // A call that waits opens the connection for messages.
    await lock.tryLock(20);
    await lease.unlock();
    redis.disconnect();
    console.log("over");
  `);

  it("the connections to the sentinels keep no process alive", async () => {
    const options = { ...group.address.redis, failoverDetector: true };
    const args = [program, JSON.stringify(options)];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 });
    expect(stdout).toBe("over\n");
  });
});

describe("a failover that loses the key", () => {
  /** Refuses smaller tokens than it has seen. */
  class Resource {
    readonly writes: string[] = [];
    #highest = 0;

    write(token: number, who: string): boolean {
      if (token < this.#highest) return false;
      this.#highest = token;
      this.writes.push(who);
      return true;
    }
  }

  it("two callers believe that they hold it until the first one's renewal; the resource refuses its late write", async ({
    annotate,
  }) => {
    const { holder, waiter, lock } = duet;
    const primary = await group.primary();
    const [replica] = group.servers.filter((server) => server !== primary);
    replica?.suspend(); // it gets nothing from here on
    await group.admin(primary).call("CLIENT", "KILL", "TYPE", "replica");
    const resource = new Resource();
    const held = await holder.locks.lock(lock.name).lock({ lease: 6_000, watchdog: true });
    expect(resource.write(held.token, "first")).toBe(true);
    const failed = group.killPrimary();
    await until(() => primary.state === "ended", { what: "the primary to die" });
    replica?.resume(); // soon enough to be taken for well
    const waiting = waiter.locks.lock(lock.name).lock();
    const told = timed(new Promise<void>((at) => held.signal.addEventListener("abort", () => at())));
    const [next, waited] = await timed(waiting);
    const both = held.held;
    expect(resource.write(next.token, "second")).toBe(true);
    expect(resource.write(held.token, "first, late")).toBe(false);
    expect(resource.writes).toEqual(["first", "second"]);
    const [, knew] = await told;
    const { took } = await failed;
    await annotate(
      `failover ${Math.round(took)} ms; the second has it ${waited} ms after the kill, the first knows after ${knew} ms (both at one time: ${both})`,
    );
    expect(["gone", "taken", "expired"]).toContain(held.signal.reason.reason);
    await expect(held.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect([next.held, await lock.holder()]).toEqual([true, expect.stringContaining(waiter.locks.id)]);
    await next.unlock();
    await duet.expectMessages();
  }, 60_000);
});

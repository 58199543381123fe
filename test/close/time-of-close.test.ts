import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { createLockClient, type LockClientOptions, type LockError, LockLostError } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { spinLock } from "../../src/spin.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { failure, Gate } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// close() takes no longer than what is held or under way, and says what it had to take.

/** ms, far above what a busy machine needs for nothing, and far below what these clients would wait for. */
const AT_ONCE = 30_000;
const LONG = { replyTimeout: 60_000 };
const GRACE = { grace: 60_000 };

async function server() {
  const launched = await launchServer();
  onTestFinished(() => launched.stop());
  return launched;
}

function connect(port: number): Redis {
  const redis = new Redis({ host: "127.0.0.1", port, retryStrategy: () => 50 });
  redis.on("error", () => {});
  onTestFinished(() => redis.disconnect());
  return redis;
}

/** A client, and what it told. */
function client(redis: Redis, options?: LockClientOptions) {
  const locks = createLockClient(redis, options);
  const errors: Error[] = [];
  const lost: string[] = [];
  locks.on("error", (error) => void errors.push(error));
  locks.on("lost", ({ name, error }) => void lost.push(`${name} ${error.reason}`));
  return { locks, errors, lost };
}

describe("close()", () => {
  it("ends at once if Redis was never reached", async () => {
    const { locks } = client(connect(1), LONG);
    await failure(locks.lock(freshName()).tryLock());
    const waiting = failure(locks.lock(freshName()).lock());
    const both = failure(locks.multiLock([freshName(), freshName()]).lock());
    const [, took] = await timed(locks.close(GRACE));
    expect(took).toBeLessThan(AT_ONCE);
    for (const refused of [waiting, both]) expect(await refused).toMatchObject({ code: "CLIENT_CLOSED" });
  });

  it("ends at once if Redis is gone and nothing is held", async () => {
    const redisServer = await server();
    const redis = connect(redisServer.port);
    const { locks } = client(redis, LONG);
    await locks.lock(freshName()).withLock(() => {});
    await redisServer.stop();
    await until(() => redis.status === "reconnecting");
    await failure(locks.lock(freshName()).tryLock());
    const [, took] = await timed(locks.close(GRACE));
    expect(took).toBeLessThan(AT_ONCE);
  });

  it("ends at once if several masters were never used, or none can be reached", async () => {
    const locks = createQuorumClient([connect(1), connect(2), connect(3)], LONG);
    await failure(locks.lock(freshName()).tryLock());
    const [, took] = await timed(locks.close(GRACE));
    expect(took).toBeLessThan(AT_ONCE);
  });

  it("does not wait for a master that is gone", async () => {
    const servers = await Promise.all([server(), server(), server()]);
    const masters = servers.map(({ port }) => connect(port));
    const locks = createQuorumClient(masters, { leaseTime: 20_000, restartDelay: 0, ...LONG });
    const name = freshName();
    const lease = await locks.lock(name).lock();
    for (const master of masters) await until(() => master.exists(`holdfast:quorum:{${name}}`));
    await servers[2]?.stop();
    await until(() => masters[2]?.status !== "ready");
    await lease.unlock();
    const [, took] = await timed(locks.close(GRACE));
    expect(took).toBeLessThan(AT_ONCE);
  });

  it("names the leases that it had to end, and for how long they were held", async () => {
    const { port } = await server();
    const redis = connect(port);
    const { locks, errors, lost } = client(redis);
    const [forgotten, body] = [freshName("forgotten"), freshName("body")];
    const lease = await locks.lock(forgotten).lock();
    const inside = new Gate();
    const running = failure(
      spinLock(locks, body).withLock(() => {
        inside.open();
        return until(() => lost.length === 2);
      }),
    );
    await inside.passed;
    await locks.close({ grace: 60 });
    const [error] = errors as LockError[];
    expect(error).toMatchObject({ code: "LOCK_LEFT_BEHIND", lockName: null });
    for (const name of [forgotten, body])
      expect(error?.message).toMatch(new RegExp(`'${name}' \\(for \\d+ ms\\)`));
    expect(errors.length).toBe(1);
    expect(lost.sort()).toEqual([`${body} closed`, `${forgotten} closed`]);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(await running).toMatchObject({ reason: "closed" });
    expect(await redis.exists(body, `holdfast:{${forgotten}}`)).toBe(0);
    await locks.close();
    expect(errors.length).toBe(1);
  });

  it("with no grace ends leases silently, as requested", async () => {
    const { port } = await server();
    const { locks, errors, lost } = client(connect(port));
    const name = freshName();
    await locks.lock(name).lock();
    await locks.close({ grace: 0 });
    expect([errors, lost]).toEqual([[], [`${name} closed`]]);
  });
});

import { describe, expect, it } from "vitest";
import { onNodeRedis } from "../support/carrier.ts";
import { runs, Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Redis executes a command, its reply is lost, and ioredis does not send it again: the caller sees
// it fail. (That it is sent again is in resent-commands.faults.test.ts.) Whatever it did is taken
// back or found again, and nobody is let in twice.

const redis = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };
const stage = new Stage({ near: { redis, client: { localHandoffs: 0 } } });
const unavailable = { code: "LOCK_UNAVAILABLE" };

describe("the reply is lost and the command fails", () => {
  it("release with a waiter: unlock() rejects, and the waiter holds it alone", async () => {
    const { near, far, lock, proxy } = stage;
    const lease = await near.locks.lock(lock.name).lock();
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    const dropped = proxy.dropReply(runs("release"));
    await expect(lease.unlock()).rejects.toMatchObject(unavailable);
    await dropped;
    const next = await waiting;
    await near.locks.close(); // waits for the `leave` of the old hold
    expect([next.held, await lock.holder()]).toEqual([true, expect.stringContaining(far.locks.id)]);
    await next.unlock();
    await lock.gone();
  });
});

// node-redis fails it, and its link sends it again.
describe.skipIf(onNodeRedis)("a reply is lost and ioredis drops the command silently", () => {
  // What it does when it reconnects and may not send again: nothing is refused before the reply
  // timeout, but by us.
  const quiet = { autoResendUnfulfilledCommands: false };
  const silent = () => stage.join({ url: stage.proxy.url, redis: quiet });
  const forgotten = { ...unavailable, message: expect.stringContaining("autoResendUnfulfilledCommands") };

  it("acquire, release, renew: refused at once", async ({ annotate }) => {
    const { lock, proxy } = stage;
    const mine = (await silent()).locks.lock(lock.name);
    const refused = async (script: "acquire" | "release" | "renew", call: () => Promise<unknown>) => {
      const dropped = proxy.dropReply(runs(script));
      const [error, took] = await timed(call().catch((reason: unknown) => reason));
      await dropped;
      await annotate(`${script}: refused after ${took} ms`);
      expect(error).toMatchObject(forgotten);
      expect(took).toBeLessThan(1_500); // the reply timeout is 5 s
    };
    await refused("acquire", () => mine.lock());
    await lock.gone(); // it was executed, and is left
    const lease = await mine.lock();
    await refused("renew", () => lease.extend(40_000));
    expect(lease.held).toBe(true);
    await refused("release", () => lease.unlock());
    await lock.gone();
  });

  it("commands that wait for the reconnect are not lost: they are sent then", async () => {
    const { lock, proxy } = stage;
    const { redis, locks } = await silent();
    let tries = 0;
    redis.on("close", () => tries++);
    proxy.refuse(true);
    proxy.cut("commands");
    await until(() => redis.status === "reconnecting");
    const before = tries;
    const leasing = locks.lock(lock.name).lock();
    await until(() => tries > before + 2, { what: "tries to reconnect in vain" });
    proxy.refuse(false);
    const lease = await leasing;
    expect(lease.held).toBe(true);
    await lease.unlock();
  });

  it("a command that has waited for the connection, and was sent, is lost like any other", async () => {
    const { lock, proxy } = stage;
    const { redis, locks } = await silent();
    proxy.refuse(true);
    proxy.cut("commands");
    await until(() => redis.status === "reconnecting");
    const dropped = proxy.dropReply(runs("acquire"));
    const [error, took] = await timed(
      Promise.all([
        locks
          .lock(lock.name)
          .lock()
          .catch((reason: unknown) => reason),
        proxy.refuse(false),
        dropped,
      ]),
    );
    expect(error[0]).toMatchObject(forgotten);
    expect(took).toBeLessThan(1_500);
    await lock.gone();
  });
});

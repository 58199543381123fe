import { describe, expect, it } from "vitest";
import { Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Redis takes no more connections (maxclients): each new one is told so and closed.

const stage = new Stage();

/** No connection beyond those that are there now. */
async function closeDoor(): Promise<void> {
  const { redis } = stage.far;
  const count = /connected_clients:(\d+)/.exec(await redis.info("clients"))?.[1];
  await redis.config("SET", "maxclients", `${count}`);
}
const openDoor = () => stage.far.redis.config("SET", "maxclients", "1000");

describe("the connection limit is reached", () => {
  it("for a subscriber: its callers try while they wait, and get their turn when a connection is free", async ({
    annotate,
  }) => {
    const { near, far, lock } = stage;
    const held = await far.locks.lock(lock.name).lock();
    await closeDoor();
    const [impatient, took] = await timed(near.locks.lock(lock.name).tryLock(700));
    await annotate(`the impatient one is told after ${took} ms`);
    expect(impatient).toBeNull(); // Redis was heard saying that somebody holds it
    const patient = near.locks.lock(lock.name).lock();
    await openDoor();
    const [, queueing] = await timed(lock.queued(1));
    await annotate(`a place ${queueing} ms after there was room`);
    await held.unlock();
    await (await patient).unlock();
    await lock.gone();
  });

  it("for a subscriber: a lock that is released meanwhile is acquired", async ({ annotate }) => {
    const { near, far, lock } = stage;
    const held = await far.locks.lock(lock.name).lock();
    const waits = new Promise((resolve) => near.locks.once("wait", resolve));
    await closeDoor();
    const waiting = near.locks.lock(lock.name).lock();
    await waits;
    await held.unlock(); // nobody is queued
    const [lease, waited] = await timed(waiting);
    await annotate(`taken after ${waited} ms`);
    expect(lease.held).toBe(true);
    expect(waited).toBeLessThan(1_500); // SUBSCRIBE is given up after 5 s
    await openDoor();
    await lease.unlock();
    await lock.gone();
  }, 30_000);

  it("for commands: calls fail with a typed error in time, leases survive, and work resumes when a connection is free", async ({
    annotate,
  }) => {
    const { near, far, lock, proxy } = stage;
    near.locks.on("error", () => {});
    const lease = await near.locks.lock(lock.name).lock();
    const waiting = far.locks.lock(lock.name).lock();
    await lock.queued(1);
    await far.redis.config("SET", "maxclients", "1"); // those that are there stay
    proxy.cut("commands");
    const [error, took] = await timed(
      near.locks
        .lock(`${lock.name}:other`)
        .tryLock()
        .catch((reason: unknown) => reason),
    );
    await annotate(`a call fails after ${took} ms`);
    expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect(took).toBeLessThan(1_500);
    expect(lease.held).toBe(true);
    await openDoor();
    await until(() => near.redis.status === "ready", { what: "the connection to come back" });
    await lease.unlock();
    await (await waiting).unlock();
    await lock.gone();
  });
});

import { describe, expect, it, onTestFinished, vi } from "vitest";
import { LingerLearner } from "../../src/core/linger-learner.ts";
import { Actor } from "../support/actor.ts";
import { listenersOf } from "../support/listeners.ts";
import { Stage, timedAwake } from "../support/stage.ts";
import { LINGERING, PAYS } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { warm } from "../support/warm.ts";

// A lock that came to its process by a message, and not by the answer to its own command: nobody
// could ask for it before Redis was told so.

/** ms: less than `linger`, and than a re-check. */
const AT_ONCE = 500;

const stage = new Stage({ near: { client: LINGERING } });

function keepsAlways(): void {
  const keeps = vi
    .spyOn(LingerLearner.prototype, "keeps")
    .mockImplementation((name) => name === stage.lock.name);
  onTestFinished(() => keeps.mockRestore());
}

/** `near` is inside, by a grant. */
async function granted() {
  const { near, far, lock } = stage;
  await stage.warm(near);
  await warm(near, far);
  const theirs = await far.locks.lock(lock.name).lock();
  const asking = near.locks.lock(lock.name).lock();
  await lock.queued(1);
  await theirs.unlock();
  return asking;
}

/** What the lock's value says of its holder. */
const digit = async (): Promise<string> => (await stage.far.redis.get(stage.lock.keys.lock))?.[1] ?? "";

describe("a lock that was granted", () => {
  it.each(["lock", "tryLock"] as const)(
    "is cached, and goes to another process that calls %s()",
    async (how) => {
      const { near, far, lock } = stage;
      keepsAlways();
      const lease = await granted();
      expect(await digit()).toBe("0");
      await lease.unlock();
      expect(near.locks.stats().kept).toBe(1);
      // Behind the command that says so.
      await near.redis.ping();
      expect(await digit()).toBe("2");
      // tryLock() gives a busy machine 50 ms for the answer: another call then finds the lock free.
      const [theirs, waited] = await timedAwake(until(() => far.locks.lock(lock.name)[how]({})));
      expect([theirs.held, waited < AT_ONCE, near.locks.stats().recalled]).toEqual([true, true, 1]);
      await theirs.unlock();
    },
  );

  it("goes to a caller that queued before Redis was informed", async () => {
    const { near, far, lock, proxy } = stage;
    keepsAlways();
    const lease = await granted();
    proxy.partition("commands");
    await lease.unlock();
    const waiting = timedAwake(far.locks.lock(lock.name).lock());
    // `near` reads nothing, so this is not `queued`.
    await until(async () => (await lock.waiters()).length === 1);
    proxy.thaw();
    const [theirs, waited] = await waiting;
    expect(waited).toBeLessThan(AT_ONCE);
    await theirs.unlock();
    expect(near.locks.stats().kept).toBe(0);
  });

  it("is not cached if messages cannot be received", async () => {
    const { near, lock, proxy } = stage;
    keepsAlways();
    const { made } = listenersOf(near.redis);
    const lease = await granted();
    proxy.refuse(true);
    proxy.cut("subscribers");
    await until(() => made.some(({ losses }) => losses > 0), { what: "the loss of its connection" });
    await lease.unlock();
    expect([near.locks.stats().kept, await lock.holder()]).toEqual([0, ""]);
  });

  it("is free after close(), which comes before Redis was informed", async () => {
    const { near, lock } = stage;
    keepsAlways();
    const lease = await granted();
    await lease.unlock();
    expect(near.locks.stats().kept).toBe(1);
    await near.locks.close();
    expect(await lock.holder()).toBe("");
  });

  it("is free after its process has ended by itself", async () => {
    const { far, lock, server } = stage;
    const actor = await Actor.start({ url: server.url, client: LINGERING });
    await actor.call("keep", lock.name, PAYS);
    const theirs = await far.locks.lock(lock.name).lock();
    const asking = actor.call("acquire", "lock", lock.name, 10_000);
    await lock.queued(1);
    await theirs.unlock();
    const { handle } = (await asking) ?? { handle: -1 };
    await actor.call("unlock", handle);
    await until(async () => (await digit()) === "2");
    await actor.call("die", "exit").catch(() => {});
    await actor.exit;
    const [lease, waited] = await timedAwake(far.locks.lock(lock.name).lock());
    expect(waited).toBeLessThan(AT_ONCE);
    await lease.unlock();
  });
});

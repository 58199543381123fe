import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { LockWantedError } from "../../src/index.ts";
import { Actor } from "../support/actor.ts";
import type { Party } from "../support/fixture.ts";
import { LINGERING } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { warm } from "../support/warm.ts";
import { aborted, KINDS, told, WantedServer, wait } from "./wanting.ts";

// `lease.wanted`: a holder that wants to know is told when somebody waits.

const server = new WantedServer();
const { hold } = server;
/** Every message that was published to this client before is read. */
const heardAll = (other: Party, party: Party): Promise<void> => warm(other, party);

describe.each(KINDS)("of a %s", (kind) => {
  it.each(KINDS)("it aborts when another client waits, by %s", async (other) => {
    const { far, lock, lease } = await hold(kind);
    const { wanted } = lease;
    expect(lease.wanted).toBe(wanted);
    await told(lock, far);
    expect(wanted.aborted).toBe(false);
    const { gone } = await wait(far, lock, other);
    await aborted(wanted);
    expect(wanted.reason).toBeInstanceOf(LockWantedError);
    expect(wanted.reason).toMatchObject({
      code: "LOCK_WANTED",
      lockName: lock.name,
      message: `Lock '${lock.name}' is wanted by another caller: give it back soon.`,
    });
    const { waited } = wanted.reason;
    await until(() => wanted.reason.waited > waited);
    expect([lease.held, lease.signal.aborted]).toEqual([true, false]);
    await lease.unlock();
    await gone;
  });

  it("it aborts when another process waits", async () => {
    const { far, lock, name, lease } = await hold(kind);
    const { wanted } = lease;
    await told(lock, far);
    const actor = await Actor.start({ url: server.url });
    try {
      const waiting = actor.call("acquire", kind, name, 60_000);
      await once(wanted, "abort");
      await lease.unlock();
      expect(await waiting).toMatchObject({ token: expect.any(Number) });
    } finally {
      await actor.end();
    }
  });

  it("the answer to the first read reports an existing waiter", async () => {
    const { far, lock, lease } = await hold(kind);
    const { gone } = await wait(far, lock);
    await aborted(lease.wanted);
    await lease.unlock();
    await gone;
  });

  it.each(KINDS)("callers of the same client count, by %s", async (other) => {
    const { near, name, lease } = await hold(kind);
    const { wanted } = lease;
    const next = near.locks[other](name).lock();
    expect(wanted.aborted).toBe(true);
    expect(wanted.reason).toMatchObject({ code: "LOCK_WANTED", lockName: name });
    await lease.unlock();
    // It waits before the first read.
    const second = await next;
    const last = near.locks[kind](name).lock();
    await near.redis.ping();
    expect(second.wanted.aborted).toBe(true);
    expect(second.wanted.reason.waited).toBeGreaterThan(0);
    await second.unlock();
    await (await last).unlock();
  });

  it.each([undefined, LINGERING])("tryLock() does not count, client %j", async (client) => {
    const { near, far, lock, name, lease } = await hold(kind, client);
    const { wanted } = lease;
    await told(lock, far);
    for (const { locks } of [near, far])
      for (const other of KINDS) expect(await locks[other](name).tryLock()).toBeNull();
    await heardAll(far, near);
    expect(wanted.aborted).toBe(false);
    await lease.unlock();
  });

  it("candidates of an election of the same name do not count", async () => {
    const { near, far, lock, name, lease } = await hold(kind);
    const { wanted } = lease;
    await told(lock, far);
    const first = await near.locks.election(name).campaign();
    const second = near.locks.election(name).campaign();
    await first.resign();
    await (await second).resign();
    expect(wanted.aborted).toBe(false);
    const { gone } = await wait(far, lock);
    await aborted(wanted);
    await lease.unlock();
    await gone;
  });

  it("a lease that is over receives nothing", async () => {
    const { near, far, lock, name, lease } = await hold(kind);
    const { wanted } = lease;
    await told(lock, far);
    await lease.unlock();
    const first = await near.locks[kind](name).lock();
    const own = near.locks[kind](name).lock();
    expect(wanted.aborted).toBe(false);
    await first.unlock();
    const second = await own;
    const { gone } = await wait(far, lock);
    await aborted(second.wanted);
    expect(wanted.aborted).toBe(false);
    // Nor does one whose first read comes late.
    await second.unlock();
    await gone;
    const third = await near.locks[kind](name).lock();
    await third.unlock();
    const late = third.wanted;
    const fourth = await near.locks[kind](name).lock();
    const last = near.locks[kind](name).lock();
    expect(fourth.wanted.aborted).toBe(true);
    expect(late.aborted).toBe(false);
    await fourth.unlock();
    await (await last).unlock();
  });

  it("its listener may unlock at once", async () => {
    const { far, lock, name, lease } = await hold(kind);
    const unlocked = new Promise<void>((resolve) => {
      lease.wanted.addEventListener("abort", () => resolve(lease.unlock()));
    });
    await told(lock, far);
    await far.locks.lock(name).withLock(() => unlocked);
  });

  it("its listener may unlock at once, on the answer to the first read", async () => {
    const { near, far, lock, name, lease } = await hold(kind);
    const { gone } = await wait(far, lock);
    await new Promise<void>((resolve) => {
      lease.wanted.addEventListener("abort", () => resolve(lease.unlock()));
    });
    await gone;
    await (await near.locks[kind](name).lock()).unlock();
  });
});

describe("a turn in a hold that others want", () => {
  it.each(["waits", "has left"])("is notified at the first read, when the waiter %s", async (how) => {
    // A lock is passed on for 25 ms only, and the machine may be busy. Each try has new clients: one
    // that hears messages has no token for a second turn by the time that another client waits.
    for (let isPassed = false; !isPassed; ) {
      const { near, far, lock, name, lease } = await hold();
      const { wanted } = lease;
      const { leave, gone } = await wait(far, lock);
      await aborted(wanted);
      if (how === "has left") await leave();
      const holder = await lock.holder();
      const next = near.locks.lock(name).lock();
      await lease.unlock();
      const turn = await next;
      isPassed = (await lock.holder()) === holder;
      if (isPassed) expect(turn.wanted.aborted).toBe(true);
      await turn.unlock();
      await gone;
    }
  });
});

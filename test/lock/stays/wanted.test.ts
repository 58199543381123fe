import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LockClientOptions, LockWantedError } from "../../../src/index.ts";
import { handoffLua } from "../../../src/redis/lua.generated.ts";
import { type LocalServer, launchServer } from "../../../tools/redis/index.ts";
import { watchTraffic } from "../../contract/observe.ts";
import { Actor } from "../../support/actor.ts";
import { freshName, Parties, type Party } from "../../support/fixture.ts";
import { Onlooker } from "../../support/onlooker.ts";
import { onScript } from "../../support/scripts-sent.ts";
import { LINGERING } from "../../support/stays.ts";
import { until } from "../../support/until.ts";
import { warm } from "../../support/warm.ts";

// `lease.wanted`: a holder that wants to know is told when somebody waits.

const parties = new Parties();
let server: LocalServer;
beforeAll(async () => {
  server = await launchServer();
});
afterAll(async () => {
  await parties.close();
  await server.stop();
});

const KINDS = ["lock", "fairLock"] as const;
type Kind = (typeof KINDS)[number];

const join = (client?: LockClientOptions): Promise<Party> =>
  parties.join({ url: server.url, ...(client && { client }) });

/** A lock that a client holds which has done nothing before, and another client. */
async function hold(kind: Kind = "lock", client?: LockClientOptions) {
  const [near, far] = [await join(client), await join()];
  const lock = new Onlooker(far.redis, freshName("wanted"));
  return { near, far, lock, name: lock.name, lease: await near.locks[kind](lock.name).lock() };
}

/** A caller that has queued in Redis; it gives the lock back when it has it. `leave`: it goes. */
async function wait({ locks }: Party, lock: Onlooker, kind: Kind = "lock") {
  const controller = new AbortController();
  const { signal } = controller;
  const gone = locks[kind](lock.name)
    .lock({ signal })
    .then((lease) => lease.unlock())
    .catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  await lock.queued(1);
  const leave = (): Promise<void> => {
    controller.abort();
    return gone;
  };
  return { gone, leave };
}

const aborted = (signal: AbortSignal): Promise<unknown> => until(() => signal.aborted, { what: "an abort" });

/** The first read was answered. */
const told = (lock: Onlooker, { redis }: Party): Promise<unknown> =>
  until(async () => /^1[12]/.test((await redis.get(lock.keys.lock)) ?? ""), {
    what: "a holder that is told",
  });

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
    expect(wanted.reason).toMatchObject({ code: "LOCK_WANTED", lockName: lock.name, label: null });
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

  it("the answer to the first read says that somebody waits already", async () => {
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
    expect(wanted.reason).toMatchObject({ lockName: name, label: null });
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

  it("a lease that is over hears nothing", async () => {
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
});

describe("a turn in a hold that others want", () => {
  it.each(["waits", "has left"])("is told at the first read, when the one that waited %s", async (how) => {
    const { near, far, lock, name, lease } = await hold();
    let turn = lease;
    // A lock is passed on for 25 ms only, and the machine may be busy.
    for (;;) {
      const { wanted } = turn;
      const { leave, gone } = await wait(far, lock);
      await aborted(wanted);
      if (how === "has left") await leave();
      const holder = await lock.holder();
      const next = near.locks.lock(name).lock();
      await turn.unlock();
      turn = await next;
      const isPassed = (await lock.holder()) === holder;
      if (isPassed) expect(turn.wanted.aborted).toBe(true);
      const isOver = turn.unlock();
      await Promise.all([isOver, gone]);
      if (isPassed) break;
      turn = await near.locks.lock(name).lock();
    }
  });
});

describe("what it costs", () => {
  const renewals = ({ redis }: Party): { count: number } => {
    const seen = { count: 0 };
    onScript(redis, ({ args: [script] }, send) => {
      if (script === handoffLua.renewStays.sha) seen.count++;
      send();
    });
    return seen;
  };

  it("nothing where it is not read", async () => {
    const { near, far, lock, name } = await hold();
    const traffic = watchTraffic(near);
    const other = await near.locks.lock(freshName("wanted")).lock();
    await other.unlock();
    expect(traffic).toMatchObject({ commands: 2, connections: 0 });
    const { leave } = await wait(far, lock);
    await leave();
    expect(await near.locks.lock(name).tryLock()).toBeNull();
    expect(traffic.connections).toBe(0);
  });

  it("a subscription and a command where it is read first; then nothing, until messages are missed", async () => {
    const { near, far, lock, lease } = await hold();
    const seen = renewals(near);
    const traffic = watchTraffic(near);
    void lease.wanted;
    await told(lock, far);
    expect([seen.count, traffic.connections]).toEqual([1, 1]);
    void lease.wanted;
    const others = await Promise.all(
      Array.from({ length: 10 }, () => near.locks.lock(freshName("wanted")).lock()),
    );
    for (const other of others) expect(other.wanted.aborted).toBe(false);
    await heardAll(far, near);
    await Promise.all([lease, ...others].map((one) => one.unlock()));
    expect([seen.count, traffic.connections]).toEqual([1, 1]);
  });
});

describe("of several users of one hold", () => {
  it("it is one signal in a scope", async () => {
    const { near, far, lock, name, lease } = await hold();
    await lease.unlock();
    await near.locks.lock(name).withLock(async ({ wanted }) => {
      await near.locks.lock(name).withLock((inner) => expect(inner.wanted).toBe(wanted));
      const again = await near.locks.lock(name).lock();
      expect(again.wanted).toBe(wanted);
      await told(lock, far);
      const { gone } = await wait(far, lock);
      await aborted(again.wanted);
      await again.unlock();
      void gone;
    });
    await until(async () => (await lock.holder()) === "");
  });

  it("a body that stops for it rejects with its reason", async () => {
    const { near, far, lock, name, lease } = await hold();
    await lease.unlock();
    const body = near.locks.lock(name).withLock(async ({ wanted }) => {
      await once(wanted, "abort");
      wanted.throwIfAborted();
    });
    const outcome = body.catch((error: unknown) => error);
    await told(lock, far);
    await far.locks.lock(name).withLock(() => {});
    expect(await outcome).toMatchObject({ code: "LOCK_WANTED", lockName: name });
  });

  it("of a multi-lock it aborts for any of them, and names that one", async () => {
    const { near, far, lock, name, lease } = await hold();
    await lease.unlock();
    const multi = await near.locks.multiLock([name, freshName("wanted"), freshName("wanted")]).lock();
    const { wanted } = multi;
    expect(multi.wanted).toBe(wanted);
    await told(lock, far);
    expect(wanted.aborted).toBe(false);
    const { gone } = await wait(far, lock);
    await aborted(wanted);
    expect(wanted.reason).toMatchObject({ code: "LOCK_WANTED", lockName: name });
    await multi.unlock();
    await gone;
  });

  it("a multi-lock that waits counts, one that does not wait does not", async () => {
    const { near, far, lock, name, lease } = await hold();
    const { wanted } = lease;
    await told(lock, far);
    const members = [freshName("a"), name];
    expect(await near.locks.multiLock(members).tryLock()).toBeNull();
    expect(await far.locks.multiLock(members).tryLock()).toBeNull();
    await heardAll(far, near);
    expect(wanted.aborted).toBe(false);
    const waiting = far.locks.multiLock(members).lock();
    await aborted(wanted);
    await lease.unlock();
    await (await waiting).unlock();
  });
});

it.each(["redissonLock", "redissonFencedLock", "spinLock"] as const)(
  "of a %s it never aborts, and its first read sends nothing",
  async (kind) => {
    const [near, far] = [await join(), await join()];
    const name = freshName("wanted");
    const lease = await near.locks[kind](name).lock();
    const traffic = watchTraffic(near);
    const { wanted } = lease;
    expect(traffic).toMatchObject({ commands: 0, connections: 0 });
    const waits: unknown[] = [];
    for (const { locks } of [near, far]) locks.on("wait", (event) => waits.push(event));
    const waiting = [near, far].map(({ locks }) => locks[kind](name).withLock(() => {}));
    await until(() => waits.length >= 2);
    expect(wanted.aborted).toBe(false);
    await lease.unlock();
    await Promise.all(waiting);
    expect(wanted.aborted).toBe(false);
  },
);

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { SPIN_MAX, SPIN_REST } from "../../../src/defaults.ts";
import { LockUnavailableError } from "../../../src/index.ts";
import { spinLua } from "../../../src/redis/lua.generated.ts";
import { type LocalServer, launchServer } from "../../../tools/redis/index.ts";
import { failure, Gate, watchTraffic } from "../../contract/observe.ts";
import { countCommands } from "../../support/command-count.ts";
import { rights } from "../../support/documented-rights.ts";
import { freshName, Parties, type Party } from "../../support/fixture.ts";
import { loadScripts } from "../../support/load-scripts.ts";
import { staysQuiet } from "../../support/quiet.ts";
import { holdReply, onScript } from "../../support/scripts-sent.ts";
import { serverIs } from "../../support/server-version.ts";
import { type Match, TcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";

// What spinLock alone does; what it does as every lock is in spin-lock.test.ts.

const parties = new Parties();
staysQuiet();
let server: LocalServer;
/** Holds and looks with plain commands. */
let other: Party;

beforeAll(async () => {
  server = await launchServer();
  other = await parties.join({ url: server.url });
  await loadScripts(other.redis, spinLua);
});
afterAll(async () => {
  await parties.close();
  await server.stop();
});

const join = (options: Parameters<Parties["join"]>[0] = {}) => parties.join({ url: server.url, ...options });

/** A lock that somebody else holds, by a plain SET. */
async function held(ms = 60_000): Promise<string> {
  const name = freshName("spin");
  await other.redis.set(name, "somebody else", "PX", ms);
  return name;
}

/** When a client sends a script, in ms from now. `answered`: is told when a reply was read, and may hold it back. */
function watchTries({ redis }: Party, answered: (at: number) => unknown = () => {}): number[] {
  const tries: number[] = [];
  const start = performance.now();
  onScript(redis, (script, send) => {
    tries.push(performance.now() - start);
    holdReply(script, () => answered(performance.now() - start));
    send();
  });
  return tries;
}

/** How many pauses between these tries belong to a beginning: they are 1 to 16 ms long, and the longest never below 64. */
const shortPauses = (tries: readonly number[]): number =>
  tries.slice(1).filter((at, i) => at - (tries[i] ?? 0) < SPIN_MAX / 4).length;

/** A pause may take longer than it was to, and no less: what must be seen is seen in one of these rounds, if it is there. */
const ROUNDS = 10;

async function shown(round: () => Promise<boolean>): Promise<void> {
  for (let n = 0; n < ROUNDS; n++) if (await round()) return;
  throw new Error(`Not seen in ${ROUNDS} rounds`);
}

describe("in Redis", () => {
  it("is a plain string with a TTL under the name, its value the holder", async () => {
    const { locks } = await join();
    const name = freshName("spin");
    const lease = await locks.spinLock(name).lock({ lease: 20_000 });
    expect(await other.redis.get(name)).toMatch(new RegExp(`^${locks.id}:[0-9a-z]{21}$`));
    const ttl = await other.redis.pttl(name);
    expect(ttl).toBeGreaterThan(19_000);
    expect(ttl).toBeLessThanOrEqual(20_000);
    expect(lease.token).toBe(0);
    await lease.unlock();
    expect(await other.redis.exists(name)).toBe(0);
  });

  it("puts a prefix before the name", async () => {
    const { locks } = await join();
    const name = freshName("spin");
    const lease = await locks.spinLock(name, { prefix: "mutex:" }).lock();
    expect([lease.name, await other.redis.exists(`mutex:${name}`)]).toEqual([`mutex:${name}`, 1]);
    expect(await locks.spinLock(name).isLocked()).toBe(false);
    await lease.unlock();
  });

  it("refuses bad names and prefixes", () => {
    const make = other.locks.spinLock.bind(other.locks) as (...args: unknown[]) => unknown;
    expect(() => make("")).toThrow(RangeError);
    expect(() => make("", { prefix: "a" })).toThrow(RangeError);
    expect(() => make("a", { prefix: 1 })).toThrow(/prefix must be a string, received 1/);
    expect(() => make("a", "b")).toThrow(TypeError);
    expect(() => make("a", { prefixes: "b" })).toThrow(/unknown option/);
    expect(() => make("a".repeat(256), { prefix: "b".repeat(257) })).toThrow(/512 bytes/);
  });

  it("waits for a key without TTL, and takes it when it is gone", async () => {
    const { locks } = await join();
    const name = await held();
    await other.redis.persist(name);
    const lock = locks.spinLock(name);
    expect(await lock.inspect()).toMatchObject({
      holder: "somebody else",
      token: 0,
      remaining: Number.POSITIVE_INFINITY,
      waiters: [],
    });
    const waiter = lock.lock({ wait: 10_000 });
    await other.redis.del(name);
    await (await waiter).unlock();
  });

  it("names a key of another type, and never deletes it", async () => {
    const { locks } = await join();
    const name = freshName("spin");
    await other.redis.hset(name, "field", "value");
    const lock = locks.spinLock(name);
    for (const call of [
      () => lock.tryLock(),
      () => lock.lock(),
      () => lock.inspect(),
      () => lock.forceUnlock(),
    ]) {
      const error = await failure(call());
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(String(error)).toContain("WRONGTYPE");
    }
    expect(await other.redis.hget(name, "field")).toBe("value");
  });

  it("a key of another type does not cost the others their renewal", async () => {
    const { locks } = await join({ client: { leaseTime: 2_000 } });
    const leases = await Promise.all([1, 2, 3].map(() => locks.spinLock(freshName("spin")).lock()));
    const poisoned = leases[1]?.name ?? "";
    await other.redis.multi().del(poisoned).hset(poisoned, "field", "value").exec();
    await until(() => leases[1]?.signal.aborted, { what: "the poisoned one to be lost" });
    const renewed = new Set<string>();
    locks.on("renew", (event) => renewed.add(event.name));
    await until(() => renewed.size === 2, { what: "the others to be renewed" });
    await other.redis.del(poisoned);
    await Promise.allSettled(leases.map((lease) => lease.unlock()));
  });
});

describe("waiting", () => {
  it("tries after 1, 2, 4 … 128 ms, and subscribes to nothing", async () => {
    const party = await join();
    const name = await held();
    const traffic = watchTraffic(party);
    const count = await countCommands(other.redis);
    expect(await party.locks.spinLock(name).tryLock(3_000)).toBe(null);
    const { evalsha = 0, ...others } = await count.since();
    // The first try; 7 pauses of 1 to 64 ms, 127 ms at the most and half of it at the least; then 64 to 128 ms each; the last try.
    expect(evalsha).toBeLessThanOrEqual(1 + 7 + Math.ceil((3_000 - 63) / 64) + 1);
    expect(evalsha).toBeGreaterThanOrEqual(8);
    expect(Object.keys(others).filter((command) => /subscribe|publish/.test(command))).toEqual([]);
    expect(traffic.connections).toBe(0);
  });

  it("tries once more at the end of the wait, whatever the pause", async () => {
    /** Without the cut, the last pause of 64 to 128 ms would end within these 15 ms one time in seven. */
    const triesAtTheEnd = async (): Promise<boolean> => {
      const party = await join();
      const name = await held();
      let read = 0;
      const tries = watchTries(party, (at) => {
        read = at;
      });
      expect(await party.locks.spinLock(name).tryLock(410)).toBe(null);
      return Math.max(read, tries.at(-1) ?? 0) >= 395;
    };
    // Six at a time: a busy machine may have no moment left for the last one.
    await shown(async () => (await Promise.all(Array.from({ length: 6 }, triesAtTheEnd))).every(Boolean));
  });

  it("spreads its pauses, so that two processes do not try in step", async () => {
    const [a, b] = [await join(), await join()];
    const name = await held();
    const tries = [a, b].map((party) => watchTries(party));
    expect(await Promise.all([a, b].map(({ locks }) => locks.spinLock(name).tryLock(2_500)))).toEqual([
      null,
      null,
    ]);
    for (const times of tries) {
      const pauses = times.slice(9, -1).map((at, i) => at - (times[8 + i] ?? 0));
      expect(pauses.length).toBeGreaterThan(5);
      expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(16); // of 64
    }
  });

  it("begins anew with short pauses for a caller that comes when nobody waits, also while a last try is under way", () =>
    shown(async () => {
      const party = await join();
      const lock = party.locks.spinLock(await held());
      const gate = new Gate();
      const tries = watchTries(party, (at) => (at > 300 ? gate.passed : null));
      expect(await lock.tryLock(400)).toBe(null);
      const before = tries.length;
      const second = lock.tryLock(400);
      gate.open();
      expect(await second).toBe(null);
      return shortPauses(tries.slice(before)) >= 3;
    }));

  it("begins anew with short pauses after a turn", () =>
    shown(async () => {
      const party = await join();
      const name = await held();
      const lock = party.locks.spinLock(name);
      const tries = watchTries(party);
      const [first, second] = [lock.lock(), lock.lock()];
      await until(() => tries.length > 8); // the pauses are at their longest
      await other.redis.del(name);
      const lease = await first;
      const start = performance.now();
      // For so long that it keeps off for the longest time, which is 64 ms at the least.
      await until(() => performance.now() - start > SPIN_MAX / SPIN_REST);
      await lease.unlock();
      // Had again by then: this process has stood still.
      const isTaken = await other.redis.set(name, "somebody else", "PX", 60_000, "NX");
      const { length } = tries;
      if (isTaken) await until(() => tries.length > length + 5);
      const short = shortPauses(tries.slice(length));
      if (isTaken) await other.redis.del(name);
      await (await second).unlock();
      return short >= 3;
    }));

  it("has one loop of tries for a hundred callers of one process", async () => {
    const { locks } = await join();
    const lock = locks.spinLock(await held());
    const count = await countCommands(other.redis);
    await Promise.all(Array.from({ length: 100 }, () => lock.tryLock(500)));
    expect(await count.scripts()).toBeLessThanOrEqual(20);
  });

  it.each([0, 3])("tells who waits %i ms what is true now, not what it heard a pause ago", (wait) =>
    shown(async () => {
      const { locks } = await join();
      const lock = locks.spinLock(freshName("spin"));
      const first = await lock.lock();
      const began = performance.now();
      const second = lock.lock();
      // For so long that it keeps off for the longest time, which is 64 ms at the least.
      await until(() => performance.now() - began > SPIN_MAX / SPIN_REST);
      await first.unlock();
      const wasFree = (await other.redis.exists(lock.name)) === 0;
      expect(await lock.tryLock({ wait })).toBeNull();
      expect(await other.redis.exists(lock.name)).toBe(1); // the second has it
      await (await second).unlock();
      return wasFree;
    }),
  );

  it("tries once more for a caller that has less time than the pause", async () => {
    const party = await join();
    const lock = party.locks.spinLock(await held());
    const tries = watchTries(party);
    const patient = new AbortController();
    const waiting = failure(lock.lock({ signal: patient.signal }));
    await until(() => tries.length >= 10); // pauses of 64 ms and more
    const count = tries.length;
    await until(() => tries.length > count);
    const before = tries.length;
    expect(await lock.tryLock(40)).toBeNull();
    expect(tries.length).toBeGreaterThan(before);
    patient.abort("enough");
    expect(await waiting).toBe("enough");
  });

  it("stops trying when nobody waits any more", async () => {
    const party = await join();
    const controller = new AbortController();
    const waiter = failure(party.locks.spinLock(await held()).lock({ signal: controller.signal }));
    const tries = watchTries(party);
    await until(() => tries.length > 3);
    controller.abort();
    await waiter;
    await party.redis.ping();
    const { length } = tries;
    const start = performance.now();
    await until(() => performance.now() - start > 2 * SPIN_MAX); // the pause that was cut, if it were not, and another
    expect(tries.length).toBe(length);
  });

  it("passes the lock on inside the process, and subscribes to nothing for that", async () => {
    const party = await join();
    const traffic = watchTraffic(party);
    const lock = party.locks.spinLock(freshName("spin"));
    const first = await lock.lock();
    const waiting = Array.from({ length: 320 }, () => lock.withLock(() => {}));
    const [start, count] = [performance.now(), await countCommands(other.redis)];
    await first.unlock();
    await Promise.all(waiting);
    // 16 passes, unless they take 25 ms.
    const turns = 320 / 16 + Math.ceil((performance.now() - start) / 25);
    expect(await count.scripts()).toBeLessThanOrEqual(2 * turns + 20);
    expect(traffic.connections).toBe(0);
  });

  it("needs no right to any channel", async () => {
    await other.redis.call("ACL", "SETUSER", "spinner", "on", ">secret", ...rights.spin, "+ping");
    const as = { username: "spinner", password: "secret" };
    const [a, b] = [await join({ redis: as }), await join({ redis: as })];
    const name = freshName("spin");
    const lease = await a.locks.spinLock(name).lock();
    const waiter = b.locks.spinLock(name).lock({ wait: 10_000 });
    await lease.extend(40_000);
    await lease.unlock();
    await (await waiter).unlock();
    if (!serverIs("7.0")) return; // it cannot tell ahead what a right is missing for
    for (const right of ["del", "pexpire"]) {
      await other.redis.call("ACL", "SETUSER", "spinner", `-${right}`);
      const error = await failure((await join({ redis: as })).locks.spinLock(name).tryLock());
      expect(String(error)).toMatch(new RegExp(`NOPERM.*\\b${right}\\b`));
      expect(await other.redis.exists(name)).toBe(0);
      await other.redis.call("ACL", "SETUSER", "spinner", `+${right}`);
    }
  });
});

describe("a reply is lost and the command is sent again", () => {
  const runs = (script: keyof typeof spinLua): Match => {
    const { sha } = spinLua[script];
    return ([command, first]) => command === "evalsha" && first === sha;
  };
  async function behindProxy(): Promise<{ proxy: TcpProxy; near: Party }> {
    const proxy = await TcpProxy.start(server);
    const near = await join({ url: proxy.url });
    onTestFinished(() => proxy.stop());
    return { proxy, near };
  }

  it("acquire: it does not wait for itself", async () => {
    const { proxy, near } = await behindProxy();
    const dropped = proxy.dropReply(runs("acquire"));
    const lease = await near.locks.spinLock(freshName("spin")).tryLock(2_000);
    await dropped;
    expect(lease?.held).toBe(true);
    await lease?.unlock();
  });

  it("release: the lock is free, and the doubt is told", async () => {
    const { proxy, near } = await behindProxy();
    const name = freshName("spin");
    const lease = await near.locks.spinLock(name).lock();
    const dropped = proxy.dropReply(runs("release"));
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "unknown" });
    await dropped;
    expect(await other.redis.exists(name)).toBe(0);
  });
});

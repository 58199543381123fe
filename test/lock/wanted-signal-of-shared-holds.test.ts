import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { watchTraffic } from "../contract/observe.ts";
import { freshName, type Party } from "../support/fixture.ts";
import { lockOf } from "../support/permit.ts";
import { onScript } from "../support/scripts-sent.ts";
import { until } from "../support/until.ts";
import { warm } from "../support/warm.ts";
import { aborted, told, WantedServer, wait } from "./wanting.ts";

// `lease.wanted` of several users of one hold, and of several locks; what it costs, and where it
// says nothing.

const server = new WantedServer();
const { hold } = server;
/** Every message that was published to this client before is read. */
const heardAll = (other: Party, party: Party): Promise<void> => warm(other, party);

describe("for several users of one hold", () => {
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

  it("a body that stops because of it rejects with its reason", async () => {
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

  it("of a multi-lock it aborts for any member, and names that one", async () => {
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

  it("a multi-lock that waits counts, and one that does not wait does not", async () => {
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

describe("its cost", () => {
  const renewals = ({ redis }: Party): { count: number } => {
    const seen = { count: 0 };
    onScript(redis, ({ args: [script] }, send) => {
      if (script === handoffLua.renewStays.sha) seen.count++;
      send();
    });
    return seen;
  };

  it("is zero if it is not read", async () => {
    const { near, far, lock, name } = await hold();
    const traffic = watchTraffic(near);
    const other = await near.locks.lock(freshName("wanted")).lock({ wait: 0 });
    await other.unlock();
    expect(traffic).toMatchObject({ commands: 2, connections: 0 });
    const { leave } = await wait(far, lock);
    await leave();
    expect(await near.locks.lock(name).tryLock()).toBeNull();
    expect(traffic.connections).toBe(0);
  });

  it("is a subscription and a command at its first read; then zero, until messages are missed", async () => {
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

it.each(["redissonLock", "redissonFencedLock", "spinLock"] as const)(
  "it costs nothing for a %s, which never aborts it",
  async (kind) => {
    const [near, far] = [await server.join(), await server.join()];
    const name = freshName("wanted");
    const lease = await lockOf(near.locks, kind, name).lock();
    const traffic = watchTraffic(near);
    const { wanted } = lease;
    expect(traffic).toMatchObject({ commands: 0, connections: 0 });
    const waits: unknown[] = [];
    for (const { locks } of [near, far]) locks.on("wait", (event) => waits.push(event));
    const waiting = [near, far].map(({ locks }) => lockOf(locks, kind, name).withLock(() => {}));
    await until(() => waits.length >= 2);
    expect(wanted.aborted).toBe(false);
    await lease.unlock();
    await Promise.all(waiting);
    expect(wanted.aborted).toBe(false);
  },
);

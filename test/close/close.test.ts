import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createLockClient, type LockClientOptions } from "../../src/index.ts";
import { Gate } from "../contract/observe.ts";
import type { LockKind } from "../support/actor-process.ts";
import { freshName } from "../support/fixture.ts";
import { connectionIds, keysWithoutTtl } from "../support/leaks.ts";
import { OwnServer } from "../support/own-server.ts";
import { lockOf } from "../support/permit.ts";
import { onScript } from "../support/scripts-sent.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

const KINDS: LockKind[] = ["lock", "fairLock", "redissonLock"];

// A server of its own: its list of clients names nobody else.
const own = new OwnServer();

describe("close()", () => {
  const EVENTS = ["close", "ready", "end", "error", "connect", "reconnecting", "message"];
  let proxy: TcpProxy;
  let connected: number[];

  beforeEach(async () => {
    proxy = await TcpProxy.start(own.server);
    connected = [
      ...(await connectionIds(own.admin, "normal")),
      ...(await connectionIds(own.admin, "pubsub")),
    ];
  });
  afterEach(async () => {
    await proxy.stop();
    expect(await keysWithoutTtl(own.admin, "*test:*")).toEqual([]);
  });

  /** A party through the proxy that knows what its connection was like before it had a client. */
  async function join(client?: LockClientOptions) {
    const redis = new Redis(proxy.url, { retryStrategy: () => 20 });
    redis.on("error", () => {});
    await redis.ping();
    const id = await redis.client("ID");
    const listeners = (): number[] => EVENTS.map((event) => redis.listenerCount(event));
    const before = listeners();
    const locks = createLockClient(redis, client);
    onTestFinished(async () => {
      await locks.close({ grace: 0 });
      redis.disconnect();
    });
    /** Nothing of the client is left, on the caller's object or at the server. */
    const isAlone = async (): Promise<void> => {
      expect(listeners()).toEqual(before);
      await until(
        async () => (await connectionIds(own.admin, "pubsub")).every((other) => connected.includes(other)),
        {
          what: "the subscriber to go",
        },
      );
      await until(
        async () => {
          const mine = (await connectionIds(own.admin, "normal")).filter(
            (other) => !connected.includes(other),
          );
          return mine.length === 1 && mine[0] === id;
        },
        { what: "all connections but the caller's to go" },
      );
      expect(await redis.ping()).toBe("PONG");
    };
    return { redis, locks, isAlone };
  }

  /** Another client without a proxy. It is gone from the lists of clients before they are looked at. */
  async function stranger<T>(kind: LockKind, name: string, body: (lock: ReturnType<typeof locksOf>) => T) {
    const redis = new Redis(own.url);
    const locks = createLockClient(redis);
    onTestFinished(async () => {
      await locks.close({ grace: 0 });
      redis.disconnect();
    });
    await redis.ping();
    connected.push(Number(await redis.client("ID")));
    return body(locksOf(locks, kind, name));
  }
  const locksOf = (locks: ReturnType<typeof createLockClient>, kind: LockKind, name: string) =>
    lockOf(locks, kind, name);

  const closed = { name: "ClientClosedError", code: "CLIENT_CLOSED" };
  const outcome = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

  it.each(KINDS)("is idempotent: %s", async (kind) => {
    const { locks, isAlone } = await join();
    await (await lockOf(locks, kind, freshName()).lock()).unlock();
    await Promise.all([locks.close(), locks.close({ grace: 0 }), locks[Symbol.asyncDispose]()]);
    await locks.close();
    await isAlone();
  });

  it("closes a client that was never used", async () => {
    const { locks, isAlone } = await join();
    await locks.close();
    await isAlone();
  });

  it("of one of many clients on a connection: all share one set of listeners, and the others still receive events", async () => {
    const redis = new Redis(own.url);
    await redis.ping();
    const listeners = (): number[] => EVENTS.map((event) => redis.listenerCount(event));
    const before = listeners();
    const [one, ...others] = Array.from({ length: 20 }, () => createLockClient(redis));
    const shared = listeners(); // and Node warns of no leak
    expect(shared.map((count, i) => count - (before[i] ?? 0))).toEqual([1, 1, 1, 1, 1, 0, 0]);
    await one?.close();
    expect(listeners()).toEqual(shared);
    const name = freshName();
    const held = await stranger("lock", name, (lock) => lock.lock({ wait: 0 }));
    const waiting = others.map((other) => outcome(other.lock(name).lock()));
    await until(async () => (await own.admin.zcard(`holdfast:{${name}}:queue`)) === others.length);
    redis.disconnect();
    for (const error of await Promise.all(waiting))
      expect(error).toMatchObject({ message: expect.stringContaining("closed for good (status end)") });
    await Promise.all(others.map((other) => other.close({ grace: 0 })));
    expect(listeners()).toEqual(before);
    await held.unlock();
  });

  it.each(KINDS)("closes the connection that it opened for { connection: own }: %s", async (kind) => {
    const { locks, isAlone } = await join({ connection: "own" });
    const name = freshName();
    const lease = await lockOf(locks, kind, name).lock();
    const waiting = outcome(lockOf(locks, kind, name).lock());
    await until(async () => (await connectionIds(own.admin, "pubsub")).length > 0);
    await locks.close({ grace: 0 });
    expect(await waiting).toMatchObject(closed);
    expect(await outcome(lease.unlock())).toMatchObject({ reason: "closed" });
    await isAlone();
  });

  it("closes a connection for { connection: own } before it is connected", async () => {
    const { locks, isAlone } = await join({ connection: "own" });
    await locks.close();
    await isAlone();
  });

  it.each(KINDS)("while a caller is parked: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const other = await stranger(kind, name, (lock) => lock);
    const lease = await other.lock({ wait: 0 });
    const waiting = outcome(lockOf(locks, kind, name).lock());
    await until(async () => (await connectionIds(own.admin, "pubsub")).length > 0);
    if (kind !== "redissonLock") await until(async () => (await other.inspect()).waiters?.length === 1);
    await locks.close();
    expect(await waiting).toMatchObject(closed);
    expect((await other.inspect()).waiters ?? []).toEqual([]);
    await isAlone();
    await lease.unlock();
    expect(await other.isLocked()).toBe(false);
  });

  it.each(KINDS)("lets a holder finish, and refuses new callers: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const lock = lockOf(locks, kind, name);
    const lease = await lock.lock();
    let isClosed = false;
    const closing = locks.close({ grace: 10_000 }).then(() => {
      isClosed = true;
    });
    expect(await outcome(lock.tryLock())).toMatchObject(closed);
    expect(await outcome(lock.lock())).toMatchObject(closed);
    expect(await outcome(lock.withLock(() => {}))).toMatchObject(closed);
    await lease.extend(20_000);
    expect([lease.held, isClosed]).toEqual([true, false]);
    await lease.unlock();
    await closing;
    expect(lease.signal.aborted).toBe(false);
    await isAlone();
    expect(await stranger(kind, name, (lock) => lock.isLocked())).toBe(false);
  });

  it.each(KINDS)("ends a holder's lease when the grace is over: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const lease = await lockOf(locks, kind, name).lock();
    const { signal } = lease;
    const codes: unknown[] = [];
    locks.on("error", (error) => void codes.push("code" in error && error.code));
    await locks.close({ grace: 50 });
    expect(codes).toEqual(["LOCK_LEFT_BEHIND"]);
    expect(lease.held).toBe(false);
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    expect(await outcome(lease.unlock())).toMatchObject({ reason: "closed" });
    await isAlone();
    expect(await stranger(kind, name, (lock) => lock.isLocked())).toBe(false);
  });

  it.each(KINDS)("while a body holds it and another caller of this client waits: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const lock = lockOf(locks, kind, name);
    const { passed: end, open: finish } = new Gate();
    const { passed: begun, open: begin } = new Gate();
    const body = outcome(
      lock.withLock(async () => {
        begin();
        await end;
        return "finished";
      }),
    );
    await begun;
    const waiting = outcome(lock.lock());
    await until(async () => (await connectionIds(own.admin, "pubsub")).length > 0);
    const closing = locks.close();
    expect(await waiting).toMatchObject(closed);
    finish();
    expect(await body).toBe("finished");
    await closing;
    await isAlone();
    expect(await stranger(kind, name, (lock) => lock.isLocked())).toBe(false);
  });

  it.each(KINDS)("while the first command is unanswered: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    proxy.freeze("commands");
    const waiting = outcome(lockOf(locks, kind, name).lock());
    await new Promise(setImmediate); // the command is written
    const closing = locks.close({ grace: 5_000 });
    expect(await waiting).toMatchObject(closed);
    proxy.thaw();
    await closing;
    await isAlone();
    // What the command took is given back.
    expect(await stranger(kind, name, (lock) => lock.isLocked())).toBe(false);
  });

  it.each(KINDS)("while the subscriber connects: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const other = await stranger(kind, name, (lock) => lock);
    const lease = await other.lock({ wait: 0 });
    proxy.refuse(true);
    const told = new Promise((resolve) => locks.once("wait", resolve));
    const waiting = outcome(lockOf(locks, kind, name).lock());
    await told;
    await locks.close();
    expect(await waiting).toMatchObject(closed);
    proxy.refuse(false);
    await isAlone();
    await lease.unlock();
  });

  it.each(KINDS)("while the subscriber gets no answer: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const other = await stranger(kind, name, (lock) => lock);
    const lease = await other.lock({ wait: 0 });
    const told = new Promise<void>((resolve) =>
      locks.once("wait", () => {
        proxy.freeze();
        resolve();
      }),
    );
    const waiting = outcome(lockOf(locks, kind, name).lock());
    await told;
    await locks.close();
    expect(await waiting).toMatchObject(closed);
    proxy.thaw();
    await isAlone();
    await lease.unlock();
  });

  // A grant by message has only the window: the explicit lease is claimed first, and the claim is unanswered.
  it.each(["lock", "fairLock"] as const)("while a granted lock is claimed: %s", async (kind) => {
    const name = freshName();
    const { redis, locks, isAlone } = await join();
    const other = await stranger(kind, name, (lock) => lock);
    const lease = await other.lock({ wait: 0 });
    const waiting = outcome(locks[kind](name).lock({ lease: 20_000 }));
    await until(async () => (await other.inspect()).waiters?.length === 1);
    await redis.ping(); // it has read that it waits
    proxy.freeze("commands");
    let sent = 0;
    onScript(redis, (_, send) => {
      sent++;
      send();
    });
    await lease.unlock();
    await until(() => sent > 0, { what: "the claim" });
    expect((await other.inspect()).holder?.id).toContain(locks.id);
    const closing = locks.close({ grace: 5_000 });
    // Before the client is closed, which takes the grace, or an answer to the claim.
    expect(await Promise.race([waiting, closing.then(() => "told behind close()")])).toMatchObject(closed);
    proxy.thaw();
    await closing;
    await isAlone();
    await until(async () => !(await other.isLocked()), { timeout: 2_000, what: "the lock to be given back" });
  });
});

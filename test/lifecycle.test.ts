import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { createLockClient, type LockClientOptions } from "../src/index.ts";
import { type LocalServer, launchServer } from "../tools/redis.ts";
import type { LockKind } from "./support/actor-process.ts";
import { freshName } from "./support/fixture.ts";
import { keysWithoutTtl, trackUnhandled, type UnhandledTracker } from "./support/leaks.ts";
import { TcpProxy } from "./support/tcp-proxy.ts";
import { until } from "./support/until.ts";

const KINDS: LockKind[] = ["lock", "fairLock", "redissonLock"];

// A server of its own: its list of clients names nobody else.
let server: LocalServer;
let direct: Redis;

beforeAll(async () => {
  server = await launchServer();
  direct = new Redis(server.url);
});
afterAll(async () => {
  direct.disconnect();
  await server.stop();
});

/** The ids of all connections of this type that the server has, our own view excepted. */
async function clientIds(type: "normal" | "pubsub", redis = direct): Promise<number[]> {
  const own = await redis.client("ID");
  const list = String(await redis.call("CLIENT", "LIST", "TYPE", type));
  return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => Number(id)).filter((id) => id !== own);
}

describe("a process", { timeout: 30_000 }, () => {
  /** Far beyond the time that a process needs to start, and far below every lease. */
  const SOON = 15_000;

  const PRELUDE = `
    import { getEventListeners, once } from "node:events";
    import { Redis } from "ioredis";
    import { createLockClient } from "./src/index.ts";
    const [url, name, kind] = process.argv.slice(1);
    const redis = new Redis(url);
    redis.on("error", () => {});
    await once(redis, "ready");
    const before = process.getActiveResourcesInfo().join();
    const locks = createLockClient(redis, { replyTimeout: 1_000 });
    const lock = locks[kind](name);
    locks.once("wait", () => console.log("waiting"));
  `;

  class Script {
    readonly #child;
    readonly #exit: Promise<number | null>;
    stdout = "";
    stderr = "";

    constructor(script: string, kind: LockKind, name: string, url = server.url) {
      const options = ["--import", "tsx", "--input-type=module", "--eval", PRELUDE + script];
      this.#child = spawn(process.execPath, [...options, url, name, kind], {
        cwd: fileURLToPath(new URL("..", import.meta.url)), // where imports are resolved
        stdio: ["ignore", "pipe", "pipe"],
      });
      this.#child.stdout.on("data", (chunk: Buffer) => {
        this.stdout += chunk;
      });
      this.#child.stderr.on("data", (chunk: Buffer) => {
        this.stderr += chunk;
      });
      this.#exit = once(this.#child, "close").then(() => this.#child.exitCode);
      onTestFinished(() => void this.#child.kill("SIGKILL"));
    }

    get isRunning(): boolean {
      return this.#child.exitCode === null;
    }

    /** It has been told to wait, and its subscriber is open. */
    async waits(redis = direct): Promise<void> {
      const isParked = async () =>
        this.stdout.includes("waiting") && (await clientIds("pubsub", redis)).length > 0;
      await until(isParked, { what: "the process to wait" }).catch((error) => {
        throw new Error(`${error.message}\n${this.stderr}`);
      });
    }

    /** It exits without a complaint, having said this. */
    async exits(said: string): Promise<void> {
      const code = await Promise.race([this.#exit, delay(SOON, "still running" as const)]);
      const { stdout, stderr } = this;
      expect({ code, stdout: stdout.trim().split("\n"), stderr }).toEqual({
        code: 0,
        stdout: said === "" ? [""] : said.split("\n"),
        stderr: "",
      });
    }
  }

  /** Somebody else who holds the lock. */
  async function holder(kind: LockKind, name: string, url = server.url) {
    const redis = new Redis(url);
    redis.on("error", () => {});
    const locks = createLockClient(redis);
    onTestFinished(async () => {
      await locks.close({ grace: 0 });
      redis.disconnect();
    });
    return locks[kind](name).lock();
  }

  it.each(KINDS)("that forgot close() exits when its connection was quit: %s", async (kind) => {
    const script = new Script("await (await lock.lock()).unlock(); await redis.quit();", kind, freshName());
    await script.exits("");
  });

  it.each(KINDS)("that forgot close() and unlock() exits, too: %s", async (kind) => {
    const script = new Script("await lock.lock(); await redis.quit();", kind, freshName());
    await script.exits("");
  });

  it.each(KINDS)("that forgot close() after it had waited exits: %s", async (kind) => {
    const name = freshName();
    const lease = await holder(kind, name);
    const script = new Script("await (await lock.lock()).unlock(); await redis.quit();", kind, name);
    await script.waits();
    await lease.unlock();
    await script.exits("waiting");
  });

  it.each(KINDS)("that forgot close() exits although the server died meanwhile: %s", async (kind) => {
    const mortal = await launchServer();
    onTestFinished(() => mortal.stop());
    const name = freshName();
    const lease = await holder(kind, name, mortal.url);
    const view = new Redis(mortal.url);
    view.on("error", () => {});
    onTestFinished(() => view.disconnect());
    const script = new Script(
      `
        const lease = await lock.lock();
        console.log("granted");
        await once(redis, "close");
        await lease.unlock().catch((error) => console.log(error.code));
        redis.disconnect();
      `,
      kind,
      name,
      mortal.url,
    );
    await script.waits(view);
    await lease.unlock();
    await until(() => script.stdout.includes("granted"));
    await mortal.kill();
    await script.exits("waiting\ngranted\nLOCK_UNAVAILABLE");
  });

  it.each(KINDS)("that waits does not exit before it got the lock: %s", async (kind) => {
    const name = freshName();
    const lease = await holder(kind, name);
    const script = new Script(
      `
        redis.stream.unref();
        const waiting = lock.lock();
        waiting.then(async (lease) => {
          console.log("granted");
          await lease.unlock();
          redis.disconnect();
        });
      `,
      kind,
      name,
    );
    await script.waits();
    await delay(1_000); // with nothing to keep it alive it would have ended at once
    expect(script.isRunning).toBe(true);
    await lease.unlock();
    await script.exits("waiting\ngranted");
  });

  it.each(KINDS)(
    "with 100 waiters on one signal gets no warning, and no rejection is lost: %s",
    async (kind) => {
      const name = freshName();
      await holder(kind, name);
      const script = new Script(
        `
        const controller = new AbortController();
        const { signal } = controller;
        const waiting = Array.from({ length: 100 }, (_, n) =>
          n % 2 ? lock.lock({ signal }) : lock.withLock(() => {}, { signal }),
        );
        const settled = Promise.allSettled(waiting);
        await once(locks, "wait");
        setTimeout(() => controller.abort("enough"), 200);
        console.log((await settled).filter(({ reason }) => reason === "enough").length);
        console.log(getEventListeners(signal, "abort").length);
        await redis.quit();
      `,
        kind,
        name,
      );
      await script.exits("waiting\n100\n0");
    },
  );

  it.each(KINDS)("keeps nothing after close(): %s", async (kind) => {
    const name = freshName();
    const lease = await holder(kind, name);
    const script = new Script(
      `
        for (const wait of [0, 1]) await lock.tryLock(wait);
        const held = await lock.lock();
        await locks.lock(name + ":other").lock();
        await held.unlock();
        await locks.close({ grace: 0 });
        // ioredis has a timer until the socket of the subscriber is closed.
        let after;
        for (const end = performance.now() + 1_000; after !== before && performance.now() < end; ) {
          await new Promise(setImmediate);
          after = process.getActiveResourcesInfo().join();
        }
        console.log(after === before ? "nothing" : before + " became " + after);
        await redis.quit();
      `,
      kind,
      name,
    );
    await script.waits();
    await lease.unlock();
    await script.exits("waiting\nnothing");
  });
});

describe("close()", () => {
  const EVENTS = ["close", "ready", "end", "error", "connect", "reconnecting", "message"];
  let proxy: TcpProxy;
  let tracker: UnhandledTracker;
  let connected: number[];

  beforeEach(async () => {
    proxy = await TcpProxy.start(server);
    tracker = trackUnhandled();
    connected = [...(await clientIds("normal")), ...(await clientIds("pubsub"))];
  });
  afterEach(async () => {
    await tracker.assertNone();
    tracker.stop();
    await proxy.stop();
    expect(await keysWithoutTtl(direct, "*test:*")).toEqual([]);
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
      await until(async () => (await clientIds("pubsub")).every((other) => connected.includes(other)), {
        what: "the subscriber to go",
      });
      await until(
        async () => {
          const mine = (await clientIds("normal")).filter((other) => !connected.includes(other));
          return mine.length === 1 && mine[0] === id;
        },
        { what: "all connections but the caller's to go" },
      );
      expect(await redis.ping()).toBe("PONG");
    };
    return { redis, locks, isAlone };
  }

  /** Somebody else, without a proxy, who is gone from the lists of clients before they are looked at. */
  async function stranger<T>(kind: LockKind, name: string, body: (lock: ReturnType<typeof locksOf>) => T) {
    const redis = new Redis(server.url);
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
    locks[kind](name);

  const closed = { name: "ClientClosedError", code: "CLIENT_CLOSED" };
  const outcome = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

  it.each(KINDS)("is idempotent: %s", async (kind) => {
    const { locks, isAlone } = await join();
    await (await locks[kind](freshName()).lock()).unlock();
    await Promise.all([locks.close(), locks.close({ grace: 0 }), locks[Symbol.asyncDispose]()]);
    await locks.close();
    await isAlone();
  });

  it("of a client that was never used", async () => {
    const { locks, isAlone } = await join();
    await locks.close();
    await isAlone();
  });

  it.each(KINDS)("closes the connection that it opened for { connection: own }: %s", async (kind) => {
    const { locks, isAlone } = await join({ connection: "own" });
    const name = freshName();
    const lease = await locks[kind](name).lock();
    const waiting = outcome(locks[kind](name).lock());
    await until(async () => (await clientIds("pubsub")).length > 0);
    await locks.close({ grace: 0 });
    expect(await waiting).toMatchObject(closed);
    expect(await outcome(lease.unlock())).toMatchObject({ reason: "closed" });
    await isAlone();
  });

  it("right away for { connection: own }, before that is connected", async () => {
    const { locks, isAlone } = await join({ connection: "own" });
    await locks.close();
    await isAlone();
  });

  it.each(KINDS)("while a caller is parked: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const other = await stranger(kind, name, (lock) => lock);
    const lease = await other.lock();
    const waiting = outcome(locks[kind](name).lock());
    await until(async () => (await clientIds("pubsub")).length > 0);
    if (kind !== "redissonLock") await until(async () => (await other.inspect()).waiters.length === 1);
    await locks.close();
    expect(await waiting).toMatchObject(closed);
    expect((await other.inspect()).waiters).toEqual([]);
    await isAlone();
    await lease.unlock();
    expect(await other.isLocked()).toBe(false);
  });

  it.each(KINDS)("lets a holder finish, and refuses whoever comes: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const lock = locks[kind](name);
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

  it.each(KINDS)("takes the lease of a holder when the grace is over: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const lease = await locks[kind](name).lock();
    const { signal } = lease;
    await locks.close({ grace: 50 });
    expect(lease.held).toBe(false);
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    expect(await outcome(lease.unlock())).toMatchObject({ reason: "closed" });
    await isAlone();
    expect(await stranger(kind, name, (lock) => lock.isLocked())).toBe(false);
  });

  it.each(KINDS)("while a body holds it and another caller of this client waits: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const lock = locks[kind](name);
    const { promise: end, resolve: finish } = deferred();
    const { promise: begun, resolve: begin } = deferred();
    const body = outcome(
      lock.withLock(async () => {
        begin();
        await end;
        return "finished";
      }),
    );
    await begun;
    const waiting = outcome(lock.lock());
    await until(async () => (await clientIds("pubsub")).length > 0);
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
    const waiting = outcome(locks[kind](name).lock());
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
    const lease = await other.lock();
    proxy.refuse(true);
    const told = new Promise((resolve) => locks.once("wait", resolve));
    const waiting = outcome(locks[kind](name).lock());
    await told;
    await locks.close();
    expect(await waiting).toMatchObject(closed);
    proxy.refuse(false);
    await isAlone();
    await lease.unlock();
  });

  it.each(KINDS)("while nobody answers the subscriber: %s", async (kind) => {
    const name = freshName();
    const { locks, isAlone } = await join();
    const other = await stranger(kind, name, (lock) => lock);
    const lease = await other.lock();
    const told = new Promise<void>((resolve) =>
      locks.once("wait", () => {
        proxy.freeze();
        resolve();
      }),
    );
    const waiting = outcome(locks[kind](name).lock());
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
    const lease = await other.lock();
    const waiting = outcome(locks[kind](name).lock({ lease: 20_000 }));
    await until(async () => (await other.inspect()).waiters.length === 1);
    proxy.freeze("commands");
    const evalsha = vi.spyOn(redis, "evalsha");
    await lease.unlock();
    await until(() => evalsha.mock.calls.length > 0, { what: "the claim" });
    expect((await other.inspect()).holder).toContain(locks.id);
    const closing = locks.close({ grace: 5_000 });
    expect(await Promise.race([waiting, delay(4_000, "nothing for 4 s")])).toMatchObject(closed);
    proxy.thaw();
    await closing;
    await isAlone();
    await until(async () => !(await other.isLocked()), { timeout: 2_000, what: "the lock to be given back" });
  });
});

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

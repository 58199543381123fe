import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { describe, expect, it, type TestContext } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { launchServer } from "../../tools/redis/index.ts";
import type { LockKind } from "../support/actor-process.ts";
import { compiled } from "../support/compiled.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { lockOf } from "../support/permit.ts";
import { until } from "../support/until.ts";

const KINDS: LockKind[] = ["lock", "fairLock", "redissonLock", "spinLock"];

// A server of its own: its list of clients names nobody else.
const own = new OwnServer();

describe("a process", () => {
  /** Far beyond the time that a process needs to start, and far below every lease. */
  const SOON = 30_000;

  const PRELUDE = `
    import { getEventListeners, once } from "node:events";
    import { Redis } from "ioredis";
    import { createLockClient } from "./src/index.ts";
    import { lockOf } from "./test/support/permit.ts";
    const [url, name, kind] = process.argv.slice(2);
    const redis = new Redis(url, { connectionName: name }); // that of its subscriber, too
    redis.on("error", () => {});
    await once(redis, "ready");
    process.stdout; // its pipe is made at the first use
    const before = process.getActiveResourcesInfo().join();
    const locks = createLockClient(redis, { replyTimeout: 1_000 });
    const lock = lockOf(locks, kind, name);
    locks.once("wait", () => console.log("waiting"));
  `;

  class Script {
    readonly #child;
    readonly #kind: LockKind;
    readonly #name: string;
    readonly #exit: Promise<number | null>;
    stdout = "";
    stderr = "";

    constructor(
      { onTestFinished }: TestContext,
      script: string,
      kind: LockKind,
      name: string,
      url = own.url,
    ) {
      this.#kind = kind;
      this.#name = name;
      this.#child = spawn(process.execPath, [compiled(PRELUDE + script), url, name, kind], {
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

    /** Has it do what `process.on("SIGUSR2")` says. */
    signal(): void {
      this.#child.kill("SIGUSR2");
    }

    /** It has been told to wait, and its subscriber is open, where there is one. */
    async waits(redis = own.admin): Promise<void> {
      const isParked = async () =>
        this.stdout.includes("waiting") &&
        (this.#kind === "spinLock" ||
          String(await redis.call("CLIENT", "LIST", "TYPE", "pubsub")).includes(` name=${this.#name} `));
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
  async function holder({ onTestFinished }: TestContext, kind: LockKind, name: string, url = own.url) {
    const redis = new Redis(url);
    redis.on("error", () => {});
    const locks = createLockClient(redis);
    onTestFinished(async () => {
      await locks.close({ grace: 0 });
      redis.disconnect();
    });
    return lockOf(locks, kind, name).lock();
  }

  it.for(KINDS)("that forgot close() exits after its connection quits: %s", async (kind, test) => {
    const script = new Script(
      test,
      "await (await lock.lock()).unlock(); await redis.quit();",
      kind,
      freshName(),
    );
    await script.exits("");
  });

  it.for(KINDS)("that forgot close() and unlock() exits, too: %s", async (kind, test) => {
    const script = new Script(test, "await lock.lock(); await redis.quit();", kind, freshName());
    await script.exits("");
  });

  it.for(KINDS)("that forgot close() after it had waited exits: %s", async (kind, test) => {
    const name = freshName();
    const lease = await holder(test, kind, name);
    const script = new Script(test, "await (await lock.lock()).unlock(); await redis.quit();", kind, name);
    await script.waits();
    await lease.unlock();
    await script.exits("waiting");
  });

  // These wait for seconds, side by side.
  it.concurrent.for(KINDS)(
    "that forgot close() exits although the server died meanwhile: %s",
    async (kind, test) => {
      const mortal = await launchServer();
      test.onTestFinished(() => mortal.stop());
      const name = freshName();
      const lease = await holder(test, kind, name, mortal.url);
      const view = new Redis(mortal.url);
      view.on("error", () => {});
      test.onTestFinished(() => view.disconnect());
      const script = new Script(
        test,
        `
        const lease = await lock.lock();
        console.log("granted");
        // Not by once(): that rejects where the connection first tells of an error, as after a command in flight.
        await new Promise((closed) => redis.on("close", closed));
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
    },
  );

  it.for(KINDS)("that waits does not exit before it has the lock: %s", async (kind, test) => {
    const name = freshName();
    const lease = await holder(test, kind, name);
    const script = new Script(
      test,
      `
        // A timer that keeps nobody alive: it fires if something else does.
        process.on("SIGUSR2", () => setTimeout(() => console.log("alive"), 500).unref());
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
    script.signal();
    await until(() => script.stdout.includes("alive") || !script.isRunning);
    await lease.unlock();
    await script.exits("waiting\nalive\ngranted");
  });

  it.for(KINDS)(
    "with 100 waiters on one signal gets no warning, and no rejection is lost: %s",
    async (kind, test) => {
      const name = freshName();
      await holder(test, kind, name);
      const script = new Script(
        test,
        `
        const controller = new AbortController();
        const { signal } = controller;
        process.on("SIGUSR2", () => controller.abort("enough"));
        const waiting = Array.from({ length: 100 }, (_, n) =>
          n % 2 ? lock.lock({ signal }) : lock.withLock({ signal }, () => {}),
        );
        const settled = Promise.allSettled(waiting);
        console.log((await settled).filter(({ reason }) => reason === "enough").length);
        console.log(getEventListeners(signal, "abort").length);
        await locks.close(); // the places are left in the background: what is sent behind QUIT would break it
        await redis.quit();
      `,
        kind,
        name,
      );
      await script.waits();
      script.signal();
      await script.exits("waiting\n100\n0");
    },
  );

  it.for(KINDS)("retains nothing after close(): %s", async (kind, test) => {
    const name = freshName();
    const lease = await holder(test, kind, name);
    const script = new Script(
      test,
      `
        // On a busy machine the answer may come too late for a call that hardly waits. That leaves nothing either.
        for (const wait of [0, 1]) await lock.tryLock(wait).catch(() => {});
        const held = await lock.lock();
        await locks.lock(name + ":other").lock();
        await held.unlock();
        await locks.close({ grace: 0 });
        // ioredis has a timer until the socket of the subscriber is closed.
        let after;
        for (const end = performance.now() + 10_000; after !== before && performance.now() < end; ) {
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

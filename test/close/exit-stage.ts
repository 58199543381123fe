import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { createLockClient, type Lock, type LockClient } from "../../src/index.ts";
import { redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { makeCertificates } from "../support/certificates.ts";
import { compiled } from "../support/compiled.ts";
import { freshName } from "../support/fixture.ts";
import type { Address } from "../support/servers/connection.ts";
import { Connections } from "../support/servers/connections.ts";
import { until } from "../support/until.ts";

export type Transport = "TCP" | "Unix socket" | "TLS";

/** What it holds when it ends. Each has a name of its own: `${prefix}${held}`. */
export type Held = (typeof ALL_HELD)[number];

/** How it ends, and when it unlocks. */
export type Ending =
  /** In an exit handler that was added after those of the library, then `process.exit()`. */
  | "late handler"
  /** The same, and an error that nobody catches. */
  | "error"
  /** The same, in a worker thread, which ends itself. */
  | "worker"
  /** The same, with nothing left to do; `process.exitCode` is set. */
  | "nothing left"
  /** In a `beforeExit` handler, with nothing left to do. */
  | "beforeExit"
  /** In the turn of a reply, then `process.exit()`. */
  | "reply"
  /** In a timer, then `process.exit()`. */
  | "timer"
  /** Then `await locks.close()`, then `process.exit()`. */
  | "close"
  /** Not at all: the main thread ends the process, and what is kept is a worker's. */
  | "worker of a process that ends";

export const ALL_HELD = [
  "lock",
  "waited for here",
  "fairLock",
  "spinLock",
  "redissonLock",
  "multiLock",
  "readers",
  "writer",
  "permits",
  "pooled",
  "permits waited for here",
  "term",
  "taken again",
  "kept",
  "kept reads",
  "reads taken again",
] as const;

export interface ExitOrder {
  readonly address: Address;
  readonly prefix: string;
  readonly ending: Ending;
  readonly held: readonly Held[];
  /** Each is unlocked by a write of its own; left out: all by one. */
  readonly isApart?: boolean;
}

/** How a process has ended, and what it has left taken. */
export interface Ended {
  readonly code: number | null;
  readonly stderr: string;
  readonly prefix: string;
  readonly taken: readonly string[];
}

/** How many hold it, as Redis says. */
const holders: Record<Held, (name: string, locks: LockClient) => Promise<number>> = {
  lock: (name, locks) => holdersOf(locks.lock(name)),
  "waited for here": (name, locks) => holdersOf(locks.lock(name)),
  fairLock: (name, locks) => holdersOf(locks.fairLock(name)),
  spinLock: (name, locks) => holdersOf(spinLock(locks, name)),
  redissonLock: (name, locks) => holdersOf(redissonLock(locks, name)),
  multiLock: async (name, locks) =>
    (await holdersOf(locks.lock(`${name}/a`))) + (await holdersOf(locks.lock(`${name}/b`))),
  readers: async (name, locks) => (await locks.readWriteLock(name).inspect()).holders.length,
  writer: async (name, locks) => (await locks.readWriteLock(name).inspect()).holders.length,
  permits: async (name, locks) => (await locks.semaphore(name, { permits: 3 }).inspect()).holders.length,
  pooled: async (name, locks) => (await locks.semaphore(name, { permits: 3 }).inspect()).holders.length,
  "permits waited for here": async (name, locks) =>
    (await locks.semaphore(name, { permits: 3 }).inspect()).holders.length,
  term: async (name, locks) => ((await locks.election(name).leader()) === null ? 0 : 1),
  "taken again": (name, locks) => holdersOf(locks.lock(name)),
  kept: (name, locks) => holdersOf(locks.lock(name)),
  "kept reads": async (name, locks) => (await locks.readWriteLock(name).inspect()).holders.length,
  "reads taken again": async (name, locks) => (await locks.readWriteLock(name).inspect()).holders.length,
};

const holdersOf = async (lock: Pick<Lock, "inspect">): Promise<number> =>
  (await lock.inspect()).holder === null ? 0 : 1;

/**
 * Two servers, of which one speaks TLS only, and processes that end while they hold something
 * there. Registers its hooks.
 */
export class ExitStage {
  readonly #servers: LocalServer[] = [];
  readonly #addresses = new Map<Transport, Address>();
  readonly #connections = new Connections();

  constructor() {
    beforeAll(async () => {
      let ca = "";
      const plain = await launchServer({ args: ["--unixsocket", "redis.sock"] });
      const secure = await launchServer({
        async prepare(dir) {
          const tls = await makeCertificates(dir);
          ca = await readFile(tls.ca, "utf8");
          return { tls };
        },
      });
      this.#servers.push(plain, secure);
      const { host, port } = plain;
      this.#addresses.set("TCP", { redis: { host, port } });
      this.#addresses.set("Unix socket", { redis: { path: join(plain.dir, "redis.sock") } });
      this.#addresses.set("TLS", { redis: { host: secure.host, port: secure.port, tls: { ca } } });
      // The servers know the scripts: others have unlocked there before.
      for (const transport of ["TCP", "TLS"] as const)
        await this.end(transport, { ending: "close", held: ["lock", "spinLock", "redissonLock", "readers"] });
    });
    afterAll(async () => {
      this.#connections.close();
      for (const server of this.#servers) await server.stop();
    });
  }

  address(transport: Transport): Address {
    const address = this.#addresses.get(transport);
    if (!address) throw new Error(`no server for ${transport}`);
    return address;
  }

  /**
   * Has a process hold these, all unless told otherwise, and end. Resolves when the server has read
   * what the process has written.
   */
  async end(transport: Transport, order: Pick<ExitOrder, "ending"> & Partial<ExitOrder>): Promise<Ended> {
    const prefix = freshName("exit");
    const address = this.address(transport);
    const program = compiled(new URL("./exit-program.ts", import.meta.url));
    const whole: ExitOrder = { held: ALL_HELD, address, prefix, ...order };
    const { code, stderr } = await run([program, JSON.stringify(whole)]);
    const redis = this.connect(transport);
    await until(async () => !`${await redis.client("LIST")}`.includes(prefix));
    return { code, stderr, prefix, taken: await this.taken(transport, prefix, whole.held) };
  }

  connect(transport: Transport): Redis {
    return this.#connections.open(this.address(transport)) as Redis;
  }

  /** Those of what the process has held that are held still. */
  async taken(transport: Transport, prefix: string, held: readonly Held[]): Promise<Held[]> {
    const locks = createLockClient(this.connect(transport), { replyTimeout: 30_000 });
    const looked = held.map(async (one) => (await holders[one](`${prefix}${one}`, locks)) > 0 && one);
    const taken = (await Promise.all(looked)).filter((one) => one !== false);
    await locks.close({ grace: 0 });
    return taken;
  }
}

const run = (args: string[]): Promise<{ code: number | null; stderr: string }> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, args, { timeout: 30_000 }, (_error, _stdout, stderr) =>
      resolve({ code: child.exitCode, stderr }),
    );
  });

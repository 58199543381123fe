import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Redis } from "ioredis";
import { createLockClient, type Lease, type Lock } from "../../src/index.ts";
import { lockOf } from "../support/permit.ts";
import { addressOf, openConnection } from "../support/servers/connection.ts";
import type { Kind } from "./side.ts";

// A Node.js service with Holdfast, told what to do by the lines that side.ts describes. Its
// arguments are those of Main.java.

const WITNESS = readFileSync(new URL("redisson/src/main/resources/witness.lua", import.meta.url), "utf8");
const [watchdog, mode, ...urls] = process.argv.slice(2);
const servers = urls.map(addressOf).map(({ redis }) => ({ host: redis.host ?? "", port: redis.port ?? 0 }));
const address = mode === "cluster" ? { redis: {}, nodes: servers } : { redis: servers[0] ?? {} };
const redis = openConnection(address) as Redis; // a Cluster has all the methods that are called here
const locks = createLockClient(redis, { leaseTime: Number(watchdog) });

/** What stands for a Java thread: a scope that stays open, in which its commands run one after the other. */
class Thread {
  readonly #leases = new Map<string, Lease[]>();
  #enter: <T>(command: () => Promise<T>) => Promise<T> = (command) => command();
  #last: Promise<unknown> = Promise.resolve();

  constructor() {
    void locks.scope(() => {
      this.#enter = AsyncLocalStorage.snapshot();
      return new Promise(() => {});
    });
  }

  /**
   * Runs it in the scope when what came before is done. `leases`: those on the lock of this name,
   * the last one last.
   */
  run<T>(name: string, command: (leases: Lease[]) => Promise<T>): Promise<T> {
    const leases = this.#leases.get(name) ?? [];
    this.#leases.set(name, leases);
    const inScope = () => this.#enter(() => command(leases));
    const done = this.#last.then(inScope, inScope);
    this.#last = done;
    return done;
  }
}

const threads = new Map<string, Thread>();

async function run(thread: Thread, kind: Kind, name: string, verb: string, args: string[]): Promise<unknown> {
  const lock = lockOf(locks, kind, name);
  const number = (index: number): number => Number(args[index]);
  const lease = (index: number): { lease: number } | undefined =>
    number(index) < 0 ? undefined : { lease: number(index) };
  switch (verb) {
    case "now":
      return "";
    case "lock":
      return thread.run(name, async (leases) => keep(leases, await lock.lock(lease(0))));
    case "tryLock":
      return thread.run(name, async (leases) =>
        keep(leases, await lock.tryLock({ wait: number(0), ...lease(1) })),
      );
    case "unlock":
      return thread.run(name, async (leases) => leases.pop()?.unlock());
    case "forceUnlock":
      return lock.forceUnlock();
    case "isLocked":
      return lock.isLocked();
    case "ttl":
      return (await lock.inspect()).remaining ?? -2;
    case "held":
      return thread.run(name, async (leases) => leases.at(-1)?.held ?? false);
    case "counts":
      return (await redis.hvals(name)).join();
    case "token":
      return (await lock.inspect()).token;
    case "hammer":
      return hammer(lock, args[0] ?? "", args[1] ?? "", number(2), number(3));
    default:
      throw new TypeError(`no such verb: ${verb}`);
  }
}

/** 0: it has none. */
const tokenOf = (lease: Lease): number => ("token" in lease ? lease.token : 0);

function keep(leases: Lease[], lease: Lease | null): number | null {
  if (lease) leases.push(lease);
  return lease && tokenOf(lease);
}

/** Tasks that take one lock again and again, and let the witness in Redis see each visit. */
async function hammer(lock: Lock, witness: string, side: string, tasks: number, ms: number): Promise<number> {
  const end = performance.now() + ms;
  let count = 0;
  const task = async (): Promise<void> => {
    for (; performance.now() < end; count++) {
      await lock.withLock(async (lease) => {
        const token = tokenOf(lease);
        await redis.eval(WITNESS, 1, witness, "in", side, token);
        await redis.eval(WITNESS, 1, witness, "out", side, token);
      });
    }
  };
  await Promise.all(Array.from({ length: tasks }, task));
  return count;
}

async function answer(line: string): Promise<void> {
  const [id, threadName = "", kind, name = "", verb = "", ...args] = line.split(" ");
  const thread = threads.get(threadName) ?? new Thread();
  threads.set(threadName, thread);
  const began = process.hrtime.bigint();
  const outcome = await run(thread, kind as Kind, name, verb, args).then(
    (value) => `ok ${value === undefined ? "" : value}`,
    (error: unknown) => `error ${error}`.replaceAll("\n", " "),
  );
  process.stdout.write(`${id} ${began} ${process.hrtime.bigint()} ${outcome}\n`);
}

await once(redis, "ready");
process.stdout.write("ready\n");
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => void answer(line));
lines.on("close", () => process.exit());

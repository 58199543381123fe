/**
 * A program that counts which requests stay alive: each runs in an AsyncLocalStorage store of its
 * own and is the first to use, or to wait for, something of its client. Prints a JSON object: how
 * many stores are alive at the end, by scenario.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { createLockClient, type LockClientOptions } from "../../src/index.ts";
import { optimistic } from "../../src/optimistic/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { lockOf } from "../support/permit.ts";

const [how = "lock", ...urls] = process.argv.slice(2);
const requests = new AsyncLocalStorage<object>();
const stores: { readonly what: string; readonly store: WeakRef<object> }[] = [];

/** Runs some work as a request, whose store nothing here keeps. */
async function request(what: string, work: () => Promise<unknown>): Promise<void> {
  const store = { what, weight: new Uint8Array(1_000) };
  stores.push({ what, store: new WeakRef(store) });
  await requests.run(store, work);
}

const connect = async (): Promise<Redis[]> => {
  // Connected outside of every request: the context of a shared connection is the application's own doing.
  const all = urls.map((url) => new Redis(url));
  await Promise.all(all.map((redis) => once(redis, "ready")));
  return all;
};

async function join(options: LockClientOptions = {}) {
  const connections = await connect();
  const [redis] = connections;
  if (!redis) throw new Error("no url");
  const locks = how === "quorum" ? createQuorumClient(connections, { restartDelay: 0 }) : null;
  const single = createLockClient(redis, options);
  return {
    redis,
    of: (name: string) => {
      if (locks) return locks.lock(name);
      if (how === "fairLock" || how === "redissonLock" || how === "spinLock")
        return lockOf(single, how, name);
      return single.lock(name);
    },
    single,
  };
}

const far = await join();
const kept: unknown[] = [];
for (let i = 0; i < 5; i++) {
  // A client of its own each: the first to use it makes its timers and connections.
  const near = await join();
  kept.push(near);
  const name = `context:${how}:${i}:${process.pid}`;
  await request(
    "the first acquisition",
    async () => void (await near.of(name).lock({ lease: 60_000 })).unlock(),
  );
  const held = await far.of(name).lock();
  await request("the first wait, which times out", () => near.of(name).tryLock(50));
  const waiting = request("a wait that is served", () => near.of(name).withLock(() => delay(5)));
  await delay(50);
  await held.unlock();
  await waiting;
  await request("a watchdog lease", async () => {
    const lease = await near.of(name).lock();
    await lease.unlock();
  });
  const controller = new AbortController();
  const again = await far.of(name).lock();
  await request("an abort", async () => {
    setTimeout(() => controller.abort("enough"), 20);
    await near
      .of(name)
      .lock({ signal: controller.signal })
      .catch(() => {});
  });
  await request("a scope", () => near.single.scope(() => near.of(name).tryLock()));
  await again.unlock();
  await request("a borrower that waits", () =>
    near.of(name).withLock(async () => {
      await Promise.all([1, 2].map(() => near.of(name).withLock({ wait: 60_000 }, () => delay(2))));
    }),
  );
  if (how === "lock") {
    await request("a multi-lock", () => near.single.multiLock([name, `${name}:2`]).withLock(() => {}));
    await request("optimistic", () => optimistic(near.redis, [`${name}:3`], () => 1));
    await request("a client of its own connection", async () => {
      const own = createLockClient(near.redis, { connection: "own" });
      kept.push(own);
      await own.lock(name).withLock(() => {});
    });
  }
}

const alive = (): Record<string, number> => {
  global.gc?.();
  const counts: Record<string, number> = {};
  for (const { what, store } of stores) if (store.deref()) counts[what] = (counts[what] ?? 0) + 1;
  return counts;
};

let left: Record<string, number> = {};
for (let turn = 0; turn < 1_000; turn++) {
  await delay(50);
  left = alive();
  if (Object.keys(left).length === 0) break;
}
// The clients are in use to the end: what they keep is what counts.
process.stdout.write(`${JSON.stringify({ requests: stores.length, clients: kept.length, left })}\n`);
process.exit(0);

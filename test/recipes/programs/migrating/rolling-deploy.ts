// Processes of three generations share one stock: old ones (the old library alone), those between
// (its class with Holdfast's queue in front), and new ones (Holdfast alone). Old and new ones never
// run together.
import { once } from "node:events";
import { createLockClient } from "holdfast";
import { Mutex } from "redis-semaphore";
import Redlock4 from "redlock4";
import Redlock5 from "redlock5";
import { connect, figure, ms, prove, sleep, startProcess, until } from "../support.ts";
import { QueuedMutex } from "./without-a-stop/queued-mutex.js";
import { QueuedRedlock4 } from "./without-a-stop/queued-redlock-4.js";
import { QueuedRedlock5 } from "./without-a-stop/queued-redlock-5.js";

const SALES = 25;
/** Longer than four processes take to start on a busy machine: the old lock is held until then. */
const TTL = 120_000;

/** Takes the lock, and resolves with its release. */
type Take = (name: string) => Promise<() => PromiseLike<unknown>>;

const redis = connect();
const options = { retryCount: 6_000, retryDelay: 20, retryJitter: 10 };
const times = { acquireTimeout: TTL, lockTimeout: TTL };

// #region between
const locks = createLockClient(redis);
const redlock4 = new QueuedRedlock4(locks, [redis], options);
const redlock5 = new QueuedRedlock5(locks, [redis], options);
const mutex = (name: string) => new QueuedMutex(locks, redis, name, times);
// #endregion

const withRedlock4 =
  (redlock: Redlock4): Take =>
  async (name) => {
    const lock = await redlock.lock(name, TTL);
    return () => lock.unlock();
  };
const withRedlock5 =
  (redlock: Redlock5): Take =>
  async (name) => {
    const lock = await redlock.acquire([name], TTL);
    return () => lock.release();
  };
const withMutex =
  (open: (name: string) => Mutex): Take =>
  async (name) => {
    const mutex = open(name);
    await mutex.acquire();
    return () => mutex.release();
  };
const withHoldfast: Take = async (name) => {
  const lease = await locks.lock(name).lock({ wait: TTL });
  return () => lease.unlock();
};

const GENERATIONS: Record<string, { old: Take; between: Take }> = {
  "redlock 4": {
    old: withRedlock4(new Redlock4([redis as never], options)),
    between: withRedlock4(redlock4),
  },
  "redlock 5": {
    old: withRedlock5(new Redlock5([redis], options)),
    between: withRedlock5(redlock5),
  },
  "redis-semaphore": {
    old: withMutex((name) => new Mutex(redis, name, times)),
    between: withMutex(mutex),
  },
};

function takeOf(library: string, generation: string): Take {
  if (generation === "new") return withHoldfast;
  const take = GENERATIONS[library]?.[generation as "old" | "between"];
  if (!take) throw new Error(`there is no ${generation} ${library}`);
  return take;
}

const shirt = (library: string): string => `lock:shirt:${library}`;

/** Sells many: reads how many were sold, and writes one more. Only a lock makes that right. */
async function sell(library: string, take: Take): Promise<void> {
  for (let i = 0; i < SALES; i++) {
    const release = await take(shirt(library));
    const sold = Number(await redis.get(`sold:${library}`));
    await sleep(1);
    await redis.set(`sold:${library}`, sold + 1);
    await release();
    await sleep(1);
  }
}

/** Notes that it has the lock. */
async function visit(library: string, take: Take, place: string): Promise<void> {
  const release = await take(shirt(library));
  await redis.rpush(`visits:${library}`, `${place} ${Date.now()}`);
  await release();
}

async function together(library: string, ...generations: string[]): Promise<void> {
  const key = `sold:${library}`;
  await redis.del(key);
  const fleet = generations.map((generation) => startProcess(import.meta.url, library, generation));
  const codes = await Promise.all(fleet.map(async (child) => (await once(child, "exit"))[0] as number));
  const sold = Number(await redis.get(key));
  const who = `${library}: ${generations.join(", ")}`;
  prove(
    codes.every((code) => code === 0),
    `${who}: none fails (${codes})`,
  );
  prove(sold === SALES * fleet.length, `${who}: exclude each other (${sold} of ${SALES * fleet.length})`);
}

async function inOrder(library: string): Promise<void> {
  const lock = locks.lock(shirt(library));
  const release = await takeOf(library, "old")(shirt(library));
  const fleet = [];
  for (const place of ["first", "second", "third", "fourth"]) {
    const child = startProcess(import.meta.url, library, "between", place);
    fleet.push(child);
    await until(`${library}: ${place} is in the queue`, async () => {
      const { holder, waiters } = await lock.inspect();
      return (holder ? 1 : 0) + (waiters?.length ?? 0) === fleet.length;
    });
  }
  prove((await redis.llen(`visits:${library}`)) === 0, `${library}: an old holder excludes the queue`);
  await release();
  const released = Date.now();
  await Promise.all(fleet.map((child) => child.exitCode ?? once(child, "exit")));
  const visits = (await redis.lrange(`visits:${library}`, 0, -1)).map((line) => line.split(" "));
  const order = visits.map(([place]) => place).join();
  prove(order === "first,second,third,fourth", `${library}: the queue is served in order: ${order}`);
  figure(
    `${library}: an old holder's release to the head of the queue, and to its end`,
    [visits[0], visits.at(-1)].map((visit) => ms(Number(visit?.[1]) - released)).join(", "),
  );
}

const [, , library, generation, place] = process.argv;
if (library !== undefined && generation !== undefined) {
  const take = takeOf(library, generation);
  await (place === undefined ? sell(library, take) : visit(library, take, place));
  process.disconnect?.();
} else {
  const libraries = Object.keys(GENERATIONS);
  await redis.del(...libraries.map((name) => `visits:${name}`));
  const rollOut = async (name: string): Promise<void> => {
    await together(name, "old", "old", "between", "between");
    await together(name, "between", "between", "new");
    await inOrder(name);
  };
  await Promise.all(libraries.map(rollOut));
}
await locks.close();
await redis.quit();

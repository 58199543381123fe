import { randomUUID } from "node:crypto";
import { createLockClient } from "../../index.ts";
import { type Link, linkTo, prefixOf } from "../../inside.ts";
import type { Connected } from "./connection.ts";

/** In ms. */
export interface Latency {
  /** The median. */
  readonly roundTrip: number;
  /**
   * From an unlock to the lease of the next caller, in another client: the median. Null: the lease
   * did not come.
   */
  readonly handOff: number | null;
  /** From PUBLISH to the subscriber: the median. Null: not measured in a Cluster. */
  readonly delivery: number | null;
}

const TRIPS = 20;
const HAND_OFFS = 5;
/** ms after which a figure needs no more samples. */
const ENOUGH = 2_000;

/** `timeout`: ms for one hand-off. */
export async function measure({ locks, redis }: Connected, timeout: number): Promise<Latency> {
  const link = linkTo(redis) as Link; // the lock client has taken it
  const roundTrip = await median(TRIPS, async () => {
    const since = performance.now();
    await link.command(["TIME"]); // a user with the rights of a lock may send it
    return performance.now() - since;
  });
  const prefix = prefixOf(locks);
  const others = createLockClient(redis, { connection: "own", ...(prefix && { prefix }) });
  const name = `holdfast:doctor:${randomUUID()}`;
  const [ours, theirs] = [locks.lock(name), others.lock(name)];
  try {
    // The first one pays for the subscription.
    const handOff = async (): Promise<number> => {
      const held = await ours.lock({ wait: timeout });
      const next = theirs.lock({ wait: timeout });
      next.catch(() => {}); // In case the inspection fails first.
      const end = performance.now() + timeout;
      while (!(await ours.inspect()).waiters?.length)
        if (performance.now() > end) throw new Error("no caller waits");
      const since = performance.now();
      await held.unlock();
      const lease = await next;
      const took = performance.now() - since;
      await lease.unlock();
      return took;
    };
    await handOff();
    return {
      roundTrip,
      handOff: await median(HAND_OFFS, handOff),
      delivery: await messages(link, prefix, timeout),
    };
  } catch {
    return { roundTrip, handOff: null, delivery: null };
  } finally {
    await others.close({ grace: 0 });
  }
}

async function messages(link: Link, prefix: string, timeout: number): Promise<number | null> {
  if (link.kind === "cluster") return null;
  const channel = `${prefix}holdfast:client:doctor-${randomUUID()}`;
  const late = AbortSignal.timeout(timeout);
  let came = (): void => {};
  /** What the next message, or becoming ready, resolves. */
  const next = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const expire = (): void => reject(late.reason);
      late.addEventListener("abort", expire, { once: true });
      came = () => {
        late.removeEventListener("abort", expire);
        resolve();
      };
    });
  const connected = next();
  const listener = link.listen(false, {
    isWanted: () => true,
    ready: () => came(),
    message: () => came(),
    lost: () => {},
    refused: () => {},
    moved: () => {},
    ended: () => {},
  });
  try {
    await connected;
    await listener.subscribe([channel]);
    return await median(TRIPS, async () => {
      const heard = next();
      const since = performance.now();
      await Promise.all([heard, link.command(["PUBLISH", channel, "doctor"])]);
      return performance.now() - since;
    });
  } finally {
    listener.close();
  }
}

/** Of fewer than `times` if they take too long, but of three at least. */
async function median(times: number, take: () => Promise<number>): Promise<number> {
  const all: number[] = [];
  const end = performance.now() + ENOUGH;
  while (all.length < times && (all.length < 3 || performance.now() < end)) all.push(await take());
  all.sort((a, b) => a - b);
  return all[Math.floor(all.length / 2)] ?? 0;
}

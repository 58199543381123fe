import type { Redis } from "ioredis";
import { connect, prove, sleep } from "../support.ts";
import { LINES } from "./lines.ts";

/** Sells one piece: reads how many are left, and writes one less. Only a lock makes that right. */
type SellOne = (product: string, signal?: AbortSignal) => Promise<void>;

/** A worker of the shop. */
interface Worker {
  /** For one customer, under a lock. */
  readonly sell: (product: string) => Promise<void>;
  close?(): Promise<void>;
}

/** Makes a worker on a connection of its own, as each process would. */
export type Open = (redis: Redis, sellOne: SellOne) => Worker;

interface Options {
  /** How long the first sale takes, in ms. */
  readonly slow?: number;
  readonly workers?: number;
  readonly customers?: number;
}

let shops = 0;

/**
 * Opens a shop with five shirts, lets the customers buy one each at the same time, and answers what
 * it has printed.
 */
export async function run(
  open: Open,
  { slow = 0, workers = 2, customers = LINES.length }: Options = {},
): Promise<string[]> {
  const product = `shirt:${process.pid}:${++shops}`;
  const lines: string[] = [];
  let isFirst = true;
  const redises = Array.from({ length: workers }, connect);
  const staff = redises.map((redis) =>
    open(redis, async (of, signal) => {
      const left = Number(await redis.get(`stock:${of}`));
      const time = isFirst ? slow : 0;
      isFirst = false;
      await sleep(5 + time, undefined, signal ? { signal } : {});
      if (left > 0) await redis.set(`stock:${of}`, left - 1);
      lines.push(left > 0 ? `${left - 1} left` : "sold out");
    }),
  );
  await redises[0]?.set(`stock:${product}`, 5);
  try {
    await Promise.all(Array.from({ length: customers }, (_, i) => staff[i % workers]?.sell(product)));
  } finally {
    for (const worker of staff) await worker.close?.();
    await redises[0]?.del(`stock:${product}`);
    for (const redis of redises) await redis.quit();
  }
  return lines;
}

const without: Open = (_, sellOne) => ({ sell: sellOne });

/**
 * Proves that the program before and the one after print the same, and that the shop sells too much
 * without a lock.
 */
export async function sameOutcome(
  before: Open,
  after: Open,
  options: { readonly slow?: number; readonly workersBefore?: number } = {},
): Promise<void> {
  const { slow = 0, workersBefore = 2 } = options;
  const [one, other, none] = await Promise.all([
    run(before, { slow, workers: workersBefore }),
    run(after, { slow }),
    run(without),
  ]);
  prove(one.join() === LINES.join(), `before: ${one}`);
  prove(other.join() === LINES.join(), `after: ${other}`);
  prove(none.join() !== LINES.join(), "without a lock the shop sells more than it has");
}

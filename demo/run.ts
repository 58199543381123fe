import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { countCommands } from "../tools/redis/count-commands.ts";
import { Crew, type Job } from "./crew.ts";
import type { Plan } from "./plans.ts";
import type { Progress } from "./progress.ts";
import { closeShop, lookAround, ORDERS, openShop, readSales, type Shop, STOCK } from "./shop.ts";

export const WORKERS = 4;
const LOOK_EVERY_MS = 100;
/** So many pieces are sold by others while a worker is stopped. */
const SOLD_MEANWHILE = 5;
/** The lease of the runs with a stopped worker, which last a lease longer. */
const SHORT_LEASE_MS = 500;
const LEASE_MS = 30_000;

/** What one run came to. Sales, stock and tokens are read from Redis, not believed from the workers. */
export interface Result extends Plan {
  readonly sold: number;
  /** The pieces that Redis says are left. */
  readonly stock: number;
  readonly seconds: number;
  /**
   * How long the orders waited for their turn, in ms, ascending. The orders that found it sold out
   * waited too.
   */
  readonly waits: readonly number[];
  /** Commands that the workers sent. */
  readonly sent: number;
  /** How often customers were charged, and how many sales were not taken. */
  readonly charges: number;
  readonly refused: number;
  /** Commands that Redis executed meanwhile, those inside scripts included; ours are taken out. */
  readonly executed: number;
  /** The fencing tokens in the order of the sales. */
  readonly tokens: readonly number[];
}

const ownCommands = countCommands();

/**
 * Opens the shop, lets all workers loose on it together, and takes stock.
 *
 * @throws Error when a worker fails, dies or hangs; the signal's reason when it aborts
 */
export async function runOnce(
  plan: Plan,
  place: {
    redis: Redis;
    url: string;
    quorum: readonly string[];
    program: string;
    progress: Progress;
    signal: AbortSignal;
  },
): Promise<Result> {
  const { redis, url, quorum, program, progress, signal } = place;
  const shop = newShop();
  const leaseTime = plan.stops ? SHORT_LEASE_MS : LEASE_MS;
  const job = (orders: number[], worker: number): Job => ({
    strategy: plan.strategy,
    isFenced: plan.isFenced,
    url,
    quorum,
    shop,
    worker,
    orders,
    leaseTime,
    naps: plan.stops && worker === 0,
  });
  const crew = new Crew(program, dealOrders().map(job), signal);
  let ticker: NodeJS.Timeout | undefined;
  try {
    progress.start(plan);
    await openShop(redis, shop);
    await crew.ready();

    // When Redis fails, the workers say so; there is no need to hear it twice.
    const look = () =>
      lookAround(redis, shop).then(
        (seen) => progress.show(seen),
        () => {},
      );
    ticker = setInterval(look, LOOK_EVERY_MS);
    const executedBefore = await executedForOthers(redis);
    const started = performance.now();
    const reports = plan.stops
      ? await crew.workWithNap(() => othersHaveSold(redis, shop, signal))
      : await crew.work();
    const seconds = (performance.now() - started) / 1000;
    const executed = (await executedForOthers(redis)) - executedBefore;
    clearInterval(ticker);

    const { sold, stock } = await lookAround(redis, shop);
    const sales = await readSales(redis, shop);
    progress.end({ sold, stock, seconds });
    await crew.leave();
    return {
      ...plan,
      sold,
      stock,
      seconds,
      executed,
      waits: reports.flatMap((report) => report.waits).sort((a, b) => a - b),
      sent: sum(reports, (report) => report.sent),
      charges: sum(reports, (report) => report.charges),
      refused: sum(reports, (report) => report.refused),
      tokens: sales.flatMap((sale) => sale.token ?? []),
    };
  } finally {
    clearInterval(ticker);
    crew.dismiss();
    // The reason why a run failed is worth more than that the cleaning failed too.
    await closeShop(redis, shop).catch(() => {});
  }
}

/** Resolves when the stock has been written a few times by others. The crew ends it when they are stuck. */
async function othersHaveSold(redis: Redis, shop: Shop, signal: AbortSignal): Promise<void> {
  while ((await lookAround(redis, shop)).sold < SOLD_MEANWHILE) await delay(LOOK_EVERY_MS, null, { signal });
}

const sum = <T>(all: readonly T[], of: (one: T) => number): number =>
  all.reduce((total, one) => total + of(one), 0);

/** The orders for each worker, dealt like cards: the same in every run. */
function dealOrders(): number[][] {
  const orders = Array.from({ length: ORDERS }, (_, order) => order);
  return Array.from({ length: WORKERS }, (_, worker) => orders.filter((order) => order % WORKERS === worker));
}

/** A name of its own for each run, so that two demos on one Redis do not sell from the same shelf. */
function newShop(): Shop {
  const prefix = `holdfast-demo:${randomUUID().slice(0, 8)}`;
  return { stock: `${prefix}:stock`, sales: `${prefix}:sales`, lock: `${prefix}:product:1` };
}

/** What Redis has executed so far, without the commands of this process; INFO does not count itself. */
async function executedForOthers(redis: Redis): Promise<number> {
  const own = ownCommands();
  const stats = await redis.info("stats");
  const executed = /^total_commands_processed:(\d+)/m.exec(stats)?.[1];
  return Number(executed) - own;
}

/** The pieces sold that were not there. */
export function oversold(result: Result): number {
  return Math.max(0, result.sold - STOCK);
}

/** Did every sale get a higher token than the one before it? False when there are none. */
export function tokensGrow({ tokens }: Result): boolean {
  return tokens.length > 0 && tokens.every((token, i) => i === 0 || token > (tokens[i - 1] ?? Infinity));
}

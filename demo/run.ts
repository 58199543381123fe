import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { countCommands } from "../tools/count-commands.ts";
import { Crew, type Job } from "./crew.ts";
import type { Way } from "./guards.ts";
import type { Progress } from "./progress.ts";
import { closeShop, lookAround, ORDERS, openShop, readSales, type Shop, STOCK } from "./shop.ts";

export const WORKERS = 4;
const LOOK_EVERY_MS = 100;

/** What one run came to. Sales, stock and tokens are read from Redis, not believed from the workers. */
export interface Result {
  readonly way: Way;
  readonly sold: number;
  /** The pieces that Redis says are left. */
  readonly stock: number;
  readonly seconds: number;
  /** How long the orders waited for their turn, in ms, ascending. The orders that found it sold out waited too. */
  readonly waits: readonly number[];
  /** Commands that the workers sent. */
  readonly sent: number;
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
export async function runOnce(options: {
  way: Way;
  redis: Redis;
  url: string;
  progress: Progress;
  signal: AbortSignal;
}): Promise<Result> {
  const { way, redis, url, progress, signal } = options;
  const shop = newShop();
  const job = (orders: number[], worker: number): Job => ({ way, url, shop, worker, orders });
  const crew = new Crew(dealOrders().map(job), signal);
  let ticker: NodeJS.Timeout | undefined;
  try {
    progress.start(way);
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
    const reports = await crew.work();
    const seconds = (performance.now() - started) / 1000;
    const executed = (await executedForOthers(redis)) - executedBefore;
    clearInterval(ticker);

    const { sold, stock } = await lookAround(redis, shop);
    const sales = await readSales(redis, shop);
    progress.end({ sold, stock, seconds });
    await crew.leave();
    return {
      way,
      sold,
      stock,
      seconds,
      executed,
      waits: reports.flatMap((report) => report.waits).sort((a, b) => a - b),
      sent: reports.reduce((sum, report) => sum + report.sent, 0),
      tokens: sales.flatMap((sale) => sale.token ?? []),
    };
  } finally {
    clearInterval(ticker);
    crew.dismiss();
    // The reason why a run failed is worth more than that the cleaning failed too.
    await closeShop(redis, shop).catch(() => {});
  }
}

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

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { countCommands } from "../tools/redis/count-commands.ts";
import type { Driver } from "./connect.ts";
import { Crew, type Job } from "./crew.ts";
import type { Plan } from "./plans.ts";
import type { Progress } from "./progress.ts";
import { closeShop, lookAround, ORDERS, openShop, readSales, type Shop, STOCK } from "./shop.ts";
import { isLibraryLock, isWrong } from "./strategies.ts";

export const WORKERS = 4;
const LOOK_EVERY_MS = 100;
/** So many pieces are sold by others while a worker is stopped. */
const SOLD_MEANWHILE = 5;
/** The lease of the runs with a stopped or killed worker, which last a lease longer. */
export const SHORT_LEASE_MS = 500;
const LEASE_MS = 30_000;
/** How often a worker is stopped for a damage that needs some luck. */
const MOST_NAPS = 8;
/** Customers of one process at a time where a lock is wrong, so that the stopped worker has its turns. */
const TILLS_OF_WRONG = 5;
/** How long the demo watches a lock that a killed process has left. */
export const WATCHED_MS = 3 * SHORT_LEASE_MS;

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
  /** How many locks of other holders the stopped worker deleted when it went on. */
  readonly deleted: number;
  /** What became of the lock of a killed process; null: none was killed. */
  readonly left: Left | null;
}

interface Left {
  /** Milliseconds that the lock had to live after it was watched; -1: without limit; -2: it was gone. */
  readonly ttl: number;
  /** The pieces sold while it was watched. */
  readonly sold: number;
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
    driver: Driver;
    program: string;
    progress: Progress;
    signal: AbortSignal;
  },
): Promise<Result> {
  const { redis, url, quorum, driver, program, progress, signal } = place;
  const { strategy } = plan;
  const shop = newShop();
  const hasMistake = isWrong(strategy);
  const job = (orders: number[], worker: number): Job => ({
    strategy,
    driver: isLibraryLock(strategy) ? driver : "ioredis",
    isFenced: plan.isFenced,
    url,
    quorum,
    shop,
    worker,
    orders,
    tills: hasMistake ? TILLS_OF_WRONG : orders.length,
    leaseTime: plan.stops || hasMistake ? SHORT_LEASE_MS : LEASE_MS,
    naps: worker > 0 ? null : hasMistake ? "gap" : plan.stops ? "sale" : null,
  });
  const crew = new Crew(program, dealOrders().map(job), signal);
  let ticker: NodeJS.Timeout | undefined;
  try {
    progress.start();
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
    const others = new Others(redis, shop, signal);
    const left =
      strategy === "setnx-expire"
        ? await crew.workWithCrash(
            () => others.haveSold(),
            () => others.whatIsLeft(),
          )
        : null;
    const reports =
      left !== null
        ? []
        : hasMistake
          ? await crew.workWithNaps(() => others.haveSoldOrDamaged())
          : plan.stops
            ? await crew.workWithNaps(() => others.haveSold().then(() => true))
            : await crew.work();
    const seconds = (performance.now() - started) / 1000;
    const executed = (await executedForOthers(redis)) - executedBefore;
    clearInterval(ticker);

    const { sold, stock } = await lookAround(redis, shop);
    const sales = await readSales(redis, shop);
    progress.end({ sold, stock, seconds });
    // Those that wait for the lock of a killed process cannot leave; they are dismissed.
    if (left === null) await crew.leave();
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
      deleted: sum(reports, (report) => report.deleted),
      left,
    };
  } finally {
    clearInterval(ticker);
    crew.dismiss();
    // The reason why a run failed is worth more than that the cleaning failed too.
    await closeShop(redis, shop).catch(() => {});
  }
}

/** What the workers do while the first one is stopped or dead. The crew ends it when they are stuck. */
class Others {
  readonly #redis: Redis;
  readonly #shop: Shop;
  readonly #signal: AbortSignal;
  #naps = 0;

  constructor(redis: Redis, shop: Shop, signal: AbortSignal) {
    this.#redis = redis;
    this.#shop = shop;
    this.#signal = signal;
  }

  /** Resolves when some pieces more have been sold, or none are left. */
  async haveSold(): Promise<void> {
    const { sold: before } = await this.#look();
    for (;;) {
      const { sold, stock } = await this.#look();
      if (sold >= before + SOLD_MEANWHILE || stock <= 0) return;
      await delay(LOOK_EVERY_MS / 10, null, { signal: this.#signal });
    }
  }

  /** The same; with true when a piece has been sold twice by now, or the stopped worker had its chances. */
  async haveSoldOrDamaged(): Promise<boolean> {
    const { sold, stock } = await this.#look();
    this.#naps += 1;
    if (sold + stock > STOCK || stock <= 0 || this.#naps > MOST_NAPS) return true;
    await this.haveSold();
    return false;
  }

  /** What the lock is like when it should be over since long. */
  async whatIsLeft(): Promise<Left> {
    const { sold: before } = await this.#look();
    await delay(WATCHED_MS, null, { signal: this.#signal });
    const { sold } = await this.#look();
    return { ttl: await this.#redis.pttl(this.#shop.lock), sold: sold - before };
  }

  #look() {
    return lookAround(this.#redis, this.#shop);
  }
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

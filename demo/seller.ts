/**
 * A process of the shop that stays open: customers come to its tills until it is told to leave. See
 * crew.ts for the other end.
 */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { createLockClient, isLockLost, type LockClient, LockTimeoutError } from "../src/index.ts";
import { observe } from "../src/tools/ui/index.ts";
import { type Connection, connect, overIoredis } from "./connect.ts";
import type { Shift } from "./crew.ts";
import { report, workAs } from "./member.ts";
import { chance, type Product, shelf, TERMINALS, wantedBy } from "./shelves.ts";
import { fencedTill, sellOne } from "./shop.ts";

/** Of one process. */
const TILLS = 4;
/** A customer who has waited so long goes away. */
const PATIENCE_MS = 12_000;
/** Between two customers of a till, and how long a payment takes: from and to. */
const PAUSE_MS = [50, 900] as const;
const PAYMENT_MS = [150, 1_100] as const;

const between = ([from, to]: readonly [number, number], number: number): number =>
  Math.round(from + chance(number) * (to - from));

async function sell({ url, prefix, worker }: Shift): Promise<void> {
  const redis = await connect(url, prefix);
  const locks = createLockClient(redis, { label: `counter ${worker + 1}` });
  const stop = observe(locks, redis);
  const leaving = new AbortController();
  process.on("message", (word) => word === "leave" && leaving.abort());
  report({ is: "ready" });
  await once(process, "message");
  const counter = new Counter(redis, locks, worker, leaving.signal);
  await Promise.all(Array.from({ length: TILLS }, (_, number) => counter.open(number)));
  stop();
  await locks.close();
  await redis.quit();
  report({ is: "done", waits: [], sent: 0, charges: counter.charges, refused: counter.refused, deleted: 0 });
}

/** The tills of one process. */
class Counter {
  charges = 0;
  /** Sales that the shop did not take, because somebody has broken the lock. */
  refused = 0;
  readonly #store: Connection;
  readonly #locks: LockClient;
  readonly #worker: number;
  readonly #leaving: AbortSignal;
  readonly #terminals;

  constructor(redis: Redis, locks: LockClient, worker: number, leaving: AbortSignal) {
    this.#store = overIoredis(redis);
    this.#locks = locks;
    this.#worker = worker;
    this.#leaving = leaving;
    this.#terminals = locks.semaphore("card-terminals", { permits: TERMINALS });
  }

  /** Serves one customer after the other. */
  async open(number: number): Promise<void> {
    for (let served = 0; !this.#leaving.aborted; served++) {
      const order = (served * TILLS + number) * 10 + this.#worker;
      await delay(between(PAUSE_MS, order), null, { signal: this.#leaving }).catch(() => {});
      if (this.#leaving.aborted) return;
      await this.#serve(order, wantedBy(order)).catch((error: unknown) => {
        if (isLockLost(error)) this.refused++;
        else if (!(error instanceof LockTimeoutError || this.#leaving.aborted)) throw error;
      });
    }
  }

  /** The first product is kept from others until the second one is sold too. */
  #serve(order: number, [product, further]: readonly [Product, Product?]): Promise<unknown> {
    const waiting = { wait: PATIENCE_MS, signal: this.#leaving, label: `order ${order}` };
    const lock = this.#locks.lock(shelf(product).lock);
    return lock.withLock(waiting, async (lease) => {
      const till = fencedTill(this.#store, shelf(product), lease);
      await sellOne(till, order, this.#worker, () => this.#charge(order));
      if (further !== undefined) await this.#serve(order, [further]);
    });
  }

  async #charge(order: number): Promise<void> {
    this.charges++;
    await this.#terminals.withPermits(() => delay(between(PAYMENT_MS, order)));
  }
}

workAs<Shift>(sell);

import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { fencedEval } from "../src/fencing/index.ts";
import type { Lease, UnfencedLease } from "../src/index.ts";
import type { Transaction } from "../src/optimistic/index.ts";
import type { Connection } from "./connect.ts";

/** Pieces of the one product in stock when the shop opens, and the customers who want one each. */
export const STOCK = 200;
export const ORDERS = 600;

/** Where one run keeps its shop in Redis, and the names of its locks. */
export interface Shop {
  readonly stock: string;
  readonly sales: string;
  readonly lock: string;
}

/** What the shop writes down for every piece sold. */
export interface Sale {
  readonly order: number;
  readonly worker: number;
  /** The fencing token of the lease; null where the lock has none. */
  readonly token: number | null;
}

/** How an order reads the stock and writes it back. */
export interface Till {
  /** The fencing token that came with the lock; null: there is none. */
  readonly token: number | null;
  read(): Promise<number>;
  /** Rejects when the write is refused. */
  write(stock: number, sale: Sale): Promise<unknown>;
}

/**
 * Sells one piece the way most shops do: read the stock, check it, charge the customer, write the
 * stock back. It is right when nobody else does the same between the reading and the writing, and
 * only then.
 *
 * @param charge the call to the payment service
 * @returns false when the product is sold out
 */
export async function sellOne(
  till: Till,
  order: number,
  worker: number,
  charge: () => Promise<void>,
): Promise<boolean> {
  const stock = await till.read();
  if (stock <= 0) return false;
  await charge();
  await till.write(stock - 1, { order, worker, token: till.token });
  return true;
}

/** The call to the payment service: 1 or 2 ms, the same for the same order in every run. */
export async function chargeCustomer(order: number): Promise<void> {
  await delay(1 + (order % 2));
}

/** Writes whatever it is told to. */
export function till(connection: Connection, shop: Shop, lease?: UnfencedLease): Till {
  return {
    token: lease && "token" in lease ? (lease as Lease).token : null,
    read: async () => Number(await connection.get(shop.stock)),
    write: (stock, sale) => connection.setAndPush(shop.stock, `${stock}`, shop.sales, JSON.stringify(sale)),
  };
}

const WRITE = `
  redis.call("SET", KEYS[1], ARGV[1])
  redis.call("RPUSH", KEYS[2], ARGV[2])`;

/** Refuses the write of a holder whose lock has gone to somebody else meanwhile. */
export function fencedTill(connection: Connection, shop: Shop, lease: Lease): Till {
  return {
    ...till(connection, shop, lease),
    write: (stock, sale) =>
      fencedEval(connection.client, WRITE, {
        keys: [shop.stock, shop.sales],
        args: [stock, JSON.stringify(sale)],
        resource: shop.stock,
        fence: lease.token,
      }),
  };
}

/** Writes only if nobody else has written since it read. */
export function watchedTill(tx: Transaction<Redis>, shop: Shop): Till {
  return {
    token: null,
    read: async () => Number(await tx.redis.get(shop.stock)),
    write: async (stock, sale) => tx.multi.set(shop.stock, stock).rpush(shop.sales, JSON.stringify(sale)),
  };
}

/** Opens the shop with a full stock and no sales. */
export async function openShop(redis: Redis, shop: Shop, stock = STOCK): Promise<void> {
  await closeShop(redis, shop);
  await redis.set(shop.stock, stock);
}

/** Removes what a run has left in Redis: its own keys, nothing else, since the Redis may be somebody's. */
export async function closeShop(redis: Redis, shop: Shop): Promise<void> {
  await redis.unlink(shop.stock, shop.sales, shop.lock, `holdfast:fence:${shop.stock}`);
}

/** How things stand in the shop, as Redis knows it. */
export async function lookAround(redis: Redis, shop: Shop): Promise<{ sold: number; stock: number }> {
  // Sales first: a sale between the two is missing, and never one that has not been taken from the stock.
  const [sold, stock] = await Promise.all([redis.llen(shop.sales), redis.get(shop.stock)]);
  return { sold, stock: Number(stock) };
}

/** Every sale, in the order in which it was written down. */
export async function readSales(redis: Redis, shop: Shop): Promise<Sale[]> {
  const lines = await redis.lrange(shop.sales, 0, -1);
  return lines.map((line) => JSON.parse(line) as Sale);
}

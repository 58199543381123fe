import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";

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
  /** How long the order waited for its turn, in ms. */
  readonly waited: number;
}

/**
 * Sells one piece the way most shops do: read the stock, check it, charge the customer, write the stock back. It is
 * right when nobody else does the same between the reading and the writing, and only then.
 *
 * @returns false when the product is sold out
 */
export async function sellOne(redis: Redis, shop: Shop, sale: Sale): Promise<boolean> {
  const stock = Number(await redis.get(shop.stock));
  if (stock <= 0) return false;
  await chargeCustomer(sale.order);
  await redis.set(shop.stock, stock - 1);
  await redis.rpush(shop.sales, JSON.stringify(sale));
  return true;
}

/** The call to the payment service: 1 or 2 ms, the same for the same order in every run. */
async function chargeCustomer(order: number): Promise<void> {
  await delay(1 + (order % 2));
}

/** Opens the shop with a full stock and no sales. */
export async function openShop(redis: Redis, shop: Shop): Promise<void> {
  await closeShop(redis, shop);
  await redis.set(shop.stock, STOCK);
}

/** Removes what a run has left in Redis: its own keys, nothing else, since the Redis may be somebody's. */
export async function closeShop(redis: Redis, shop: Shop): Promise<void> {
  await redis.unlink(shop.stock, shop.sales, shop.lock);
}

/** How things stand in the shop, as Redis knows it. */
export async function lookAround(redis: Redis, shop: Shop): Promise<{ sold: number; stock: number }> {
  const [sold, stock] = await Promise.all([redis.llen(shop.sales), redis.get(shop.stock)]);
  return { sold, stock: Number(stock) };
}

/** Every sale, in the order in which it was written down. */
export async function readSales(redis: Redis, shop: Shop): Promise<Sale[]> {
  const lines = await redis.lrange(shop.sales, 0, -1);
  return lines.map((line) => JSON.parse(line) as Sale);
}

import type { Shop } from "./shop.ts";

/** The products of the shop that stays open; the first one is what most customers want. */
export const PRODUCTS = ["blue mug", "teapot", "tray", "spoon", "green mug"] as const;
export type Product = (typeof PRODUCTS)[number];

/** More than is sold in a day. */
export const STOCK_OF_EACH = 200_000;
/** Payments that go on at the same moment, over all processes. */
export const TERMINALS = 4;

export function shelf(product: Product): Shop {
  const name = product.replace(" ", "-");
  return { stock: `stock:${name}`, sales: `sales:${name}`, lock: `product:${name}` };
}

/** What a customer wants: a third of them the first product, and each sixth of them another one with it. */
export function wantedBy(order: number): readonly [Product, Product?] {
  const first = chance(order) < 0.33 ? 0 : Math.floor(chance(order + 0.5) * PRODUCTS.length);
  const other = first + 1 + Math.floor(chance(order + 0.25) * PRODUCTS.length);
  const [one, two] = [PRODUCTS[first] ?? PRODUCTS[0], PRODUCTS[other]];
  // Always in the same order, so that no two customers wait for each other.
  return order % 6 === 0 && two !== undefined ? [one, two] : [one];
}

/** From 0 to 1, and the same for the same number whenever it is asked. */
export function chance(number: number): number {
  const spread = Math.sin(number * 12.9898) * 43_758.5453;
  return spread - Math.floor(spread);
}

import { show } from "../api/validate.ts";
import { quote, quoteAll } from "../util/quote.ts";
import type { Driver, Link } from "./driver.ts";
import { lackedByConnection } from "./ioredis/connection.ts";
import { ioredis } from "./ioredis/link.ts";
import { isPool, lackedByClient } from "./node-redis/client.ts";
import { nodeRedis } from "./node-redis/index.ts";

/** A Redis in memory has no library: its connection is a link. */
const memory: Driver = (given) => (isLink(given) ? given : null);
const isLink = (given: unknown): given is Link =>
  typeof given === "object" && given !== null && "openOnce" in given && "commandOn" in given;

/** In this order: the first driver that recognises the connection takes it. */
const DRIVERS: readonly Driver[] = [ioredis, nodeRedis, memory];

/** A link on the caller's connection, whatever its library; null: it is no connection. */
export function linkTo(connection: unknown): Link | null {
  for (const driver of DRIVERS) {
    const link = driver(connection);
    if (link) return link;
  }
  return null;
}

/**
 * Messages show this for a value that is no connection. A mock of a library has only some of its
 * methods.
 */
export function noConnection(given: unknown): string {
  if (given instanceof Promise) return "must be a connection, received a Promise: await it first";
  if (typeof given === "object" && given !== null && isPool(given))
    return "must be one connection, and a pool of node-redis sends each command on another one: use createClient(…)";
  const known =
    "an ioredis connection, new Redis(…), or a node-redis client, createClient(…), of the packages ioredis and redis";
  return `must be ${known}, received ${received(given)}; for tests without a Redis there is createTestLocks() of holdfast/testing`;
}

/** A mock has many of these members, an older version of a library nearly all. */
const LIKENESSES = [
  { what: "an ioredis connection (5.11 or later)", lackedBy: lackedByConnection },
  { what: "a node-redis client (5 or later)", lackedBy: lackedByClient },
];

/** ioredis's own connections say the second one. */
const NAMELESS = ["Object", "EventEmitter", ""];

/** Without values: an address has a password. */
function received(given: unknown): string {
  if (typeof given === "string") return "a string";
  if (typeof given === "function")
    return given.name ? `the function or class ${quote(given.name)}` : show(given);
  if (typeof given !== "object" || given === null || Array.isArray(given)) return show(given);
  const name: unknown = given.constructor?.name;
  const isNamed = typeof name === "string" && !NAMELESS.includes(name);
  const object = isNamed ? `an object of class ${quote(name)}` : show(given);
  const [like] = LIKENESSES.map(({ what, lackedBy }) => {
    const lacked = lackedBy(given);
    return { what, lacked, share: lacked.length / lackedBy({}).length };
  }).sort((one, other) => one.share - other.share);
  return like && like.share < 1 / 2
    ? `${object}, which lacks ${quoteAll(like.lacked)} of ${like.what}`
    : object;
}

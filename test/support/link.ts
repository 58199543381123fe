import type { Redis } from "ioredis";
import type { Link } from "../../src/redis/driver.ts";
import { linkTo } from "../../src/redis/drivers.ts";
import { carrierOf, socketOf } from "./carrier.ts";
import { until } from "./until.ts";

/**
 * The connection that is observed instead of a link, by the object that a test uses as a
 * connection.
 */
export const standIns = new WeakMap<object, Link>();

/** A link on a connection, as a client makes it. */
export function linkOf(connection: object): Link {
  const link = linkTo(carrierOf(connection)) ?? standIns.get(connection);
  if (!link) throw new Error("No driver knows this connection");
  return link;
}

/** Returns a function that waits until the present connection is lost, and another one exists. */
export function nextConnection(redis: Redis): () => Promise<unknown> {
  const before = socketOf(redis);
  const isNext = (): boolean => socketOf(redis) !== before && linkOf(redis).state === "ready";
  return () => until(isNext, { what: "the connection to come back" });
}

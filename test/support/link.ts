import type { Link } from "../../src/redis/driver.ts";
import { linkTo } from "../../src/redis/drivers.ts";
import { carrierOf } from "./carrier.ts";

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

import type { Link } from "../../src/redis/driver.ts";
import { linkTo } from "../../src/redis/drivers.ts";
import { carrierOf } from "./carrier.ts";

/** What is watched in the place of a link, by what a test has instead of a connection. */
export const standIns = new WeakMap<object, Link>();

/** A link on a connection, as a client makes it. */
export function linkOf(connection: object): Link {
  const link = linkTo(carrierOf(connection)) ?? standIns.get(connection);
  if (!link) throw new Error("No driver knows this connection");
  return link;
}

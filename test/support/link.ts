import type { Link } from "../../src/redis/driver.ts";
import { linkTo } from "../../src/redis/drivers.ts";
import { carrierOf } from "./carrier.ts";

/** A link on a connection, as a client makes it. */
export function linkOf(connection: unknown): Link {
  const link = linkTo(carrierOf(connection));
  if (!link) throw new Error("No driver knows this connection");
  return link;
}

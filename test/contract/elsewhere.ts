import { it } from "vitest";
import { topologies } from "../support/servers/kinds.ts";
import { isWanted } from "../support/servers/wanted.ts";
import { describeLock } from "./describe-lock.ts";
import { excuseOf, type Kind } from "./kinds.ts";

/**
 * The contract of a lock kind on every topology but the plain one, which the default suite has. A file for each kind: a
 * run spreads files over the cores, and not what is in them.
 */
export function describeElsewhere(kind: Kind): void {
  const wanted = topologies.filter(
    (one) => one.name !== "standalone" && isWanted(one) && excuseOf(kind, one.name) === undefined,
  );
  if (wanted.length === 0) it.skip("no topology was asked for that this kind runs on", () => {});
  for (const topology of wanted) describeLock(kind, topology);
}

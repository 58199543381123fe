import { it } from "vitest";
import { topologies } from "../support/servers/kinds.ts";
import { isWanted } from "../support/servers/wanted.ts";
import { describeLock } from "./describe-lock.ts";
import { excuseOf, KINDS, type Kind } from "./kinds.ts";

/** The contract of every lock kind on the topologies whose name begins so. The plain one has the default suite. */
export function describeLocksOn(group: string): void {
  const inGroup = topologies.filter(({ name }) => name.startsWith(group) && name !== "standalone");
  const wanted = inGroup.filter(isWanted);
  if (wanted.length === 0) it.skip(`${group}: not asked for`, () => {});
  for (const topology of wanted)
    for (const kind of Object.keys(KINDS) as Kind[])
      if (excuseOf(kind, topology.name) === undefined) describeLock(kind, topology);
}

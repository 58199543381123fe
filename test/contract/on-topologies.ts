import { it } from "vitest";
import { topologies } from "../support/topologies/kinds.ts";
import { describeLock } from "./describe-lock.ts";
import { excuseOf, KINDS, type Kind } from "./kinds.ts";

/** `HOLDFAST_TOPOLOGIES`: a regular expression for the names of those to run over; all when left out. */
const WANTED = new RegExp(process.env.HOLDFAST_TOPOLOGIES ?? "");

/** The contract of every lock kind on the topologies whose name begins so. The plain one has the default suite. */
export function describeLocksOn(group: string): void {
  const inGroup = topologies.filter(({ name }) => name.startsWith(group) && name !== "standalone");
  const wanted = inGroup.filter(({ name }) => WANTED.test(name));
  if (wanted.length === 0) it.skip(`${group}: not asked for`, () => {});
  for (const topology of wanted)
    for (const kind of Object.keys(KINDS) as Kind[])
      if (excuseOf(kind, topology.name) === undefined) describeLock(kind, topology);
}

import { it } from "vitest";
import { topologies } from "../support/topologies/kinds.ts";
import { describeLock } from "./describe-lock.ts";

/** `HOLDFAST_TOPOLOGIES`: a regular expression for the names of those to run over; all when left out. */
const WANTED = new RegExp(process.env.HOLDFAST_TOPOLOGIES ?? "");

/** The contract of every lock kind on the topologies whose name begins so. The plain one has the default suite. */
export function describeLocksOn(group: string): void {
  const inGroup = topologies.filter(({ name }) => name.startsWith(group) && name !== "standalone");
  const wanted = inGroup.filter(({ name }) => WANTED.test(name));
  if (wanted.length === 0) it.skip(`${group}: not asked for`, () => {});
  for (const topology of wanted) {
    describeLock("lock", { tokens: true, queues: true }, topology);
    describeLock("fairLock", { tokens: true, queues: true }, topology);
    describeLock("redissonLock", { tokens: false, queues: false }, topology);
    describeLock("spinLock", { tokens: false, queues: false, messages: false }, topology);
    if (topology.name.includes("key prefix")) continue; // which the fenced lock refuses
    describeLock("redissonFencedLock", { tokens: true, queues: false, counter: true }, topology);
  }
}

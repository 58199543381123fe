import { inject } from "vitest";
import { standalone, topologies } from "../support/servers/kinds.ts";
import { quorums, threeMasters } from "../support/servers/quorums.ts";
import type { TopologyKind } from "../support/servers/topology.ts";
import { isWanted } from "../support/servers/wanted.ts";
import { excuseOf, KINDS, type Kind } from "./kinds.ts";
import { memory } from "./memory.ts";

declare module "vitest" {
  interface ProvidedContext {
    /**
     * Which places a suite runs contracts on; without it one server, or three masters. See
     * vitest.config.ts.
     */
    contractsOn?: "all other topologies" | "memory";
  }
}

/** Where the suite that runs has the contract of a lock kind kept. */
export function placesOf(kind: Kind): readonly TopologyKind[] {
  const usual = KINDS[kind].isQuorum ? threeMasters : standalone;
  const on = inject("contractsOn");
  if (on === undefined) return [usual];
  if (on === "memory") return [memory];
  return [...topologies, ...quorums].filter(
    (place) => place !== usual && isWanted(place) && excuseOf(kind, place.name) === undefined,
  );
}

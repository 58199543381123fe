import { inject } from "vitest";
import { standalone, topologies } from "../support/servers/kinds.ts";
import { quorums, threeMasters } from "../support/servers/quorums.ts";
import type { TopologyKind } from "../support/servers/topology.ts";
import { isWanted } from "../support/servers/wanted.ts";
import { excuseOf, KINDS, type Kind } from "./kinds.ts";

declare module "vitest" {
  interface ProvidedContext {
    /**
     * Which places a suite runs contracts on; without it one server, or three masters. See
     * vitest.config.ts.
     */
    contractsOn?: "all other topologies";
  }
}

/** One server, or three masters. */
export const usualPlaceOf = (kind: Kind): TopologyKind => (KINDS[kind].isQuorum ? threeMasters : standalone);

/** Where the suite that runs has the contract of a lock kind kept. */
export function placesOf(kind: Kind): readonly TopologyKind[] {
  const usual = usualPlaceOf(kind);
  if (inject("contractsOn") === undefined) return [usual];
  return [...topologies, ...quorums].filter(
    (place) => place !== usual && isWanted(place) && excuseOf(kind, place.name) === undefined,
  );
}

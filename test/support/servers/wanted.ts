import { describe, it } from "vitest";
import type { TopologyKind } from "./topology.ts";

/**
 * `HOLDFAST_TOPOLOGIES`: a regular expression for the names of the topologies to run; default: all.
 */
const WANTED = new RegExp(process.env.HOLDFAST_TOPOLOGIES ?? "");

export const isWanted = ({ name }: { readonly name: string }): boolean => WANTED.test(name);

/** `tests` on each requested topology. If there is none, it says so: an empty file would fail. */
export function describeOnWanted(kinds: readonly TopologyKind[], tests: (kind: TopologyKind) => void): void {
  const wanted = kinds.filter(isWanted);
  if (wanted.length === 0) it.skip("no requested topology", () => {});
  describe.each(wanted)("$name", tests);
}

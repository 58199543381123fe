import type { Arena, ArenaOptions, TopologyName } from "./arena.ts";
import { cluster } from "./cluster.ts";
import { quorum } from "./quorum.ts";
import { sentinel } from "./sentinel.ts";
import { standalone } from "./standalone.ts";

/** Builds the servers and the wires of a topology. */
export const arenas: Record<TopologyName, (options: ArenaOptions) => Promise<Arena>> = {
  standalone,
  sentinel,
  cluster,
  quorum,
};

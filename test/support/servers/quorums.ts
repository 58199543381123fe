import { Masters } from "./masters.ts";
import type { TopologyKind } from "./topology.ts";

/** Three masters, as in most quorums. */
export const threeMasters: TopologyKind = { name: "3 masters", launch: () => Masters.launch() };

/** Every way to have the masters of a quorum. */
export const quorums: readonly TopologyKind[] = [
  threeMasters,
  { name: "5 masters", launch: () => Masters.launch(5) },
  { name: "3 masters, RESP2", launch: () => Masters.launch(3, { driver: "ioredis 6, RESP2" }) },
  {
    name: "3 masters, ioredis 5, key prefix",
    launch: () => Masters.launch(3, { driver: "ioredis 5", keyPrefix: "app:" }),
  },
];

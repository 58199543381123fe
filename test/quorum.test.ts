import { describeLock } from "./contract/describe-lock.ts";
import { Masters } from "./support/topologies/masters.ts";

describeLock(
  "lock",
  { tokens: true, queues: false, isQuorum: true },
  { name: "3 masters", launch: () => Masters.launch() },
);

import { describeLock } from "./contract/describe-lock.ts";
import { MASTERS } from "./contract/kinds.ts";
import { Masters } from "./support/topologies/masters.ts";

describeLock("quorumLock", { name: MASTERS, launch: () => Masters.launch() });

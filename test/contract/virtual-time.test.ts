import { describeLock } from "./describe-lock.ts";
import { inVirtualTime, threeInVirtualTime } from "./in-virtual-time.ts";
import { KINDS, type Kind } from "./kinds.ts";

// All kinds in one file, and so in one process, which loads the modules once.
for (const [kind, { isQuorum }] of Object.entries(KINDS))
  describeLock(kind as Kind, [isQuorum ? threeInVirtualTime : inVirtualTime]);

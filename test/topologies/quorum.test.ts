import { describeLock } from "../contract/describe-lock.ts";
import { quorums, threeMasters } from "../support/topologies/quorums.ts";

// Three masters as they are belong to the default tests.
for (const quorum of quorums) if (quorum !== threeMasters) describeLock("quorumLock", quorum);

import { describeLock } from "./contract/describe-lock.ts";
import { threeMasters } from "./support/topologies/quorums.ts";

describeLock("quorumLock", threeMasters);

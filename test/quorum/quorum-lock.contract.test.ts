import { describeLock } from "../contract/describe-lock.ts";
import { threeMasters } from "../support/servers/quorums.ts";

describeLock("quorumLock", threeMasters);

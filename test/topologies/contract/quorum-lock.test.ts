import { it } from "vitest";
import { describeLock } from "../../contract/describe-lock.ts";
import { quorums, threeMasters } from "../../support/servers/quorums.ts";
import { isWanted } from "../../support/servers/wanted.ts";

// Three masters as they are belong to the default tests.
const wanted = quorums.filter((quorum) => quorum !== threeMasters && isWanted(quorum));
if (wanted.length === 0) it.skip("quorums: not asked for", () => {});
for (const quorum of wanted) describeLock("quorumLock", quorum);

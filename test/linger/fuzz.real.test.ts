// On a real Redis; in virtual time: test/world/seeds-with-faults.test.ts.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { type FuzzFaults, fuzz } from "./fuzz-run.ts";

// Random callers of several clients at a few locks, which they pass on and keep. Each turn is seen
// exactly: one holder, growing tokens, and where a key is lost, turns from before that begin for
// 100 ms at the most.

const MS = Number(process.env.TEST_MS ?? 1_500);
const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

let server: LocalServer;
beforeAll(async () => {
  server = await launchServer();
});
afterAll(() => server.stop());

describe.each([false, true])("clients that cache their locks: %s", (lingers) => {
  it.each<FuzzFaults>(["none", "forget", "connections"])("faults: %s", async (faults) => {
    const { violations, turns } = await fuzz({ url: server.url, seed, ms: MS, faults, lingers });
    expect(violations, `TEST_SEED=${seed}`).toEqual([]);
    expect(turns).toBeGreaterThan(0);
  });
});

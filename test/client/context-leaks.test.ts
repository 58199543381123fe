import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LocalServer } from "../../tools/redis/index.ts";
import { compiled } from "../support/compiled.ts";
import { testUrl } from "../support/fixture.ts";
import { launchAll } from "../support/servers/launch-all.ts";

// A timer or a connection keeps the AsyncLocalStorage stores of the call that made it, the
// application's request among them. Clients live as long as their process, so what they make must
// belong to no caller.

let masters: LocalServer[] = [];

beforeAll(async () => {
  masters = await launchAll(3, {});
});
afterAll(() => Promise.all(masters.map((server) => server.stop())));

describe("a client keeps no AsyncLocalStorage stores of a caller after its call", {
  timeout: 120_000,
}, () => {
  const program = compiled(new URL("./context-process.ts", import.meta.url));

  it.each(["lock", "fairLock", "redissonLock", "spinLock", "quorum"])("%s", async (how) => {
    const urls = how === "quorum" ? masters.map(({ url }) => url) : [testUrl()];
    const args = ["--expose-gc", program, how, ...urls];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 110_000 });
    const { requests, clients, left } = JSON.parse(stdout);
    expect(requests).toBeGreaterThanOrEqual(35);
    expect(clients).toBeGreaterThanOrEqual(5);
    expect(left).toEqual({});
  });
});

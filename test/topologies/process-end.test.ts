import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { sharded } from "../../src/redis/script.ts";
import type { Ending, ExitOrder, Held } from "../close/exit-stage.ts";
import { compiled } from "../support/compiled.ts";
import { freshName } from "../support/fixture.ts";
import { loadScripts } from "../support/load-scripts.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { until } from "../support/until.ts";

// What a process gives back at its end, on every server that it has a connection to: see
// test/close/process-exit.faults.test.ts for one server.

const run = promisify(execFile);
const PROGRAM = compiled(new URL("../close/exit-program.ts", import.meta.url));
/** Their keys have slots of their own, so most lie on several primaries of a Cluster. */
const HELD: readonly Held[] = ["lock", "waited for here", "fairLock", "multiLock"];
const ENDINGS: readonly Ending[] = ["late handler", "error", "reply", "timer"];

it.each([
  ["Cluster", RedisCluster],
  ["Sentinel", SentinelGroup],
] as const)("%s: a process that ends releases what it had unlocked", async (_, group) => {
  const topology = await group.launch();
  onTestFinished(() => topology.stop());
  const redis = topology.connect();
  const locks = createLockClient(redis);
  onTestFinished(() => locks.close({ grace: 0 }));
  const servers = "nodes" in redis ? redis.nodes("master") : [redis];
  // A process that unlocks in its last turn does not read that a server lacks the script (guarantees.md).
  const inCluster = Object.fromEntries(Object.entries(handoffLua).map(([key, one]) => [key, sharded(one)]));
  for (const server of servers) await loadScripts(server, handoffLua, inCluster);
  for (const ending of ENDINGS) {
    const prefix = freshName("exit");
    // A caller that waits would keep the others from ending.
    const held = HELD.filter((one) => one !== "waited for here" || /handler|error/.test(ending));
    const order: ExitOrder = { address: topology.address, prefix, ending, held, isApart: true };
    const ended = await run(process.execPath, [PROGRAM, JSON.stringify(order)], { timeout: 30_000 }).catch(
      (error) => error,
    );
    expect(`${ended.stderr}`).not.toContain("[holdfast]");
    const names = held.flatMap((one) => (one === "multiLock" ? [`${one}/a`, `${one}/b`] : one));
    let taken = names;
    // Soon: the servers may not have read yet what it has written. A lock that it kept lasts 30 s.
    const areFree = async (): Promise<boolean> => {
      const answers = await Promise.all(names.map((name) => locks.lock(`${prefix}${name}`).isLocked()));
      taken = names.filter((_, i) => answers[i]);
      return taken.length === 0;
    };
    await until(areFree, { timeout: 10_000 }).catch(() => {});
    expect([ending, taken]).toEqual([ending, []]);
  }
});

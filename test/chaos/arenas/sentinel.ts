import { setTimeout as delay } from "node:timers/promises";
import { SentinelGroup } from "../../support/servers/sentinel.ts";
import { until } from "../../support/until.ts";
import type { Fault } from "../faults/fault.ts";
import { watchPrimaries } from "../faults/primary-watch.ts";
import { serverFaults } from "../faults/servers.ts";
import type { Arena, ArenaOptions } from "./arena.ts";
import { Wires } from "./wires.ts";

/**
 * A primary with a replica, watched over by three sentinels. Workers ask the sentinels where the
 * primary is.
 */
export async function sentinel({ workers }: ArenaOptions): Promise<Arena> {
  const group = await SentinelGroup.launch();
  const wires = await Wires.lay(group, workers);
  return {
    wires,
    faults: [...serverFaults(() => group.adminOf()), ...failovers(group)],
    watch: (tell) => watchPrimaries(() => look(group), tell),
    async stop() {
      await wires.stop();
      await group.stop();
    },
  };
}

/** A server begins a new history of writes whenever it is promoted: then its id is another one. */
async function look(group: SentinelGroup): Promise<{ primaries: string; tooMany: boolean }> {
  const running = group.servers.filter(({ state }) => state !== "ended");
  const infos = await Promise.all(running.map((server) => group.admin(server).info("replication")));
  const primaries = infos.filter((info) => info.includes("role:master"));
  const ids = primaries.map((info) => /master_replid:(\w+)/.exec(info)?.[1]);
  return { primaries: ids.join(), tooMany: primaries.length !== 1 };
}

function failovers(group: SentinelGroup): Fault[] {
  const replaced = async (old: { port: number }): Promise<void> => {
    await until(async () => (await group.primary()).port !== old.port, {
      what: "a new primary",
      timeout: 60_000,
    });
  };
  const crash: Fault = {
    kind: "crash of the primary",
    weight: 3,
    async run(_, begin) {
      const primary = await group.primary();
      begin(`port ${primary.port}`);
      await primary.kill();
      await replaced(primary);
      await group.usable();
      await group.restore();
    },
  };
  const stop: Fault = {
    kind: "stop the primary until it is replaced",
    weight: 2,
    async run({ dice }, begin) {
      const primary = await group.primary();
      begin(`port ${primary.port}`);
      primary.suspend();
      await replaced(primary);
      await delay(dice.int(0, 1_000));
      await group.restore();
    },
  };
  const ordered: Fault = {
    kind: "ordered failover",
    weight: 2,
    async run(_, begin) {
      begin(`port ${(await group.primary()).port}`);
      await group.failover();
    },
  };
  const pause: Fault = {
    kind: "stop the primary for a moment",
    weight: 2,
    async run({ dice }, begin) {
      const primary = await group.primary();
      const ms = dice.int(20, 300);
      begin(`port ${primary.port} for ${ms} ms`);
      primary.suspend();
      await delay(ms);
      primary.resume();
    },
  };
  return [crash, stop, ordered, pause];
}

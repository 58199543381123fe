import { setTimeout as delay } from "node:timers/promises";
import { RedisCluster } from "../../support/servers/cluster.ts";
import { type ClusterNode, peersOf } from "../../support/servers/cluster-node.ts";
import { until } from "../../support/until.ts";
import type { Fault } from "../faults/fault.ts";
import { watchPrimaries } from "../faults/primary-watch.ts";
import { serverFaults } from "../faults/servers.ts";
import { type Arena, type ArenaOptions, keyOf, LOCKS } from "./arena.ts";
import { Wires } from "./wires.ts";

const PRIMARIES = 3;

/** Three primaries with a replica each. */
export async function cluster({ workers }: ArenaOptions): Promise<Arena> {
  const nodes = await RedisCluster.launch({ primaries: PRIMARIES, replicas: 1 });
  const wires = await Wires.lay(nodes, workers);
  return {
    wires,
    faults: [...serverFaults(() => nodes.adminOf(keyOf(LOCKS[0]))), ...failovers(nodes), migration(nodes)],
    watch: (tell) => watchPrimaries(() => look(nodes), tell),
    async stop() {
      await wires.stop();
      await nodes.stop();
    },
  };
}

/** A primary's id is its name in the Cluster: it changes with a failover, and not when slots move. */
async function look(nodes: RedisCluster): Promise<{ primaries: string; tooMany: boolean }> {
  const running = nodes.nodes.filter(({ server }) => server.state !== "ended");
  const own = await Promise.all(
    running.map(async (node) => (await peersOf(node)).find(({ id }) => id === node.id)),
  );
  const primaries = own.flatMap((peer) => (peer?.isPrimary && peer.slots.length > 0 ? [peer.id] : []));
  return { primaries: primaries.sort().join(), tooMany: primaries.length !== PRIMARIES };
}

function failovers(nodes: RedisCluster): Fault[] {
  const replaced = async (old: ClusterNode, key: string, timeout = 60_000): Promise<void> => {
    const isNew = async (): Promise<boolean> => {
      const owner = await nodes.primaryOf(key).catch(() => old);
      return owner.id !== old.id;
    };
    await until(isNew, { what: "a new primary", timeout });
  };
  const fall = (kind: string, weight: number, end: (primary: ClusterNode) => unknown): Fault => ({
    kind,
    weight,
    async run(field, begin) {
      const key = keyOf(field.dice.pick(LOCKS));
      const primary = await nodes.primaryOf(key);
      begin(`port ${primary.server.port}, of ${key}`);
      await end(primary);
      await replaced(primary, key);
      await nodes.restore();
    },
  });
  const crash = fall("crash of a primary", 3, ({ server }) => server.kill());
  const stop = fall("stop a primary until it is replaced", 2, ({ server }) => server.suspend());
  const ordered: Fault = {
    kind: "ordered failover",
    weight: 2,
    async run(field, begin) {
      const key = keyOf(field.dice.pick(LOCKS));
      const primary = await nodes.primaryOf(key);
      begin(`port ${primary.server.port}, of ${key}`);
      // The primary takes no writes until the replica has all of them, so nothing should be
      // forgotten; but that it was this failover, and no other one, cannot be told.
      const replica = await nodes.replicaOf(primary);
      await replica.admin.call("CLUSTER", "FAILOVER");
      // Redis gives it up by itself when the replica does not catch up within 5 s.
      await replaced(primary, key, 7_000).catch(() => {});
      await nodes.usable();
    },
  };
  const pause: Fault = {
    kind: "stop a primary for a moment",
    weight: 2,
    async run({ dice }, begin) {
      const { server } = await nodes.primaryOf(keyOf(dice.pick(LOCKS)));
      const ms = dice.int(20, 500);
      begin(`port ${server.port} for ${ms} ms`);
      server.suspend();
      await delay(ms);
      server.resume();
    },
  };
  return [crash, stop, ordered, pause];
}

function migration(nodes: RedisCluster): Fault {
  return {
    kind: "slot migration",
    weight: 4,
    async run({ dice }, begin) {
      const lock = dice.pick(LOCKS);
      const slot = await nodes.slotOf(keyOf(lock));
      const owner = await nodes.primaryOf(slot);
      const target = dice.pick((await nodes.primaries()).filter(({ id }) => id !== owner.id));
      begin(`slot ${slot}, of ${lock}, from port ${owner.server.port} to ${target.server.port}`);
      await nodes.migrateSlot(slot, target, async (step, move) => {
        if (step === "opened") await move.keys(dice.int(0, 2));
        await delay(dice.int(0, 800));
      });
    },
  };
}

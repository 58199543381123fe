import { setTimeout as delay } from "node:timers/promises";
import { UNTIL_OLD } from "../settings.ts";
import type { Fault } from "./fault.ts";
import { type Node, names, type Roster } from "./roster.ts";
import { serverFaults } from "./servers.ts";

/**
 * What the masters of a quorum bear at any time: at one of them, and now and then at more than the
 * others can do without.
 */
export function nodeFaults(roster: Roster): readonly Fault[] {
  const { majority } = roster;
  return [
    crash(roster, "crash and restart empty", 3, 1),
    crash(roster, "crash and restart of a majority", 1, majority),
    stop(roster, "stop a node", 4, 1, 5_000),
    stop(roster, "stop a majority", 1, majority, 2_500),
    ...ofAnyServer(roster),
  ];
}

/** They have nothing on disk. It ends when they vote again; until then nothing else happens to them. */
const crash = (roster: Roster, kind: string, weight: number, count: number): Fault => ({
  kind,
  weight,
  run: ({ dice }, begin) =>
    roster.with(dice, count, async (victims) => {
      const ms = dice.pick([0, dice.int(0, 1_500)]);
      begin(`${names(victims)} for ${ms} ms`);
      await Promise.all(victims.map(({ server }) => server.kill()));
      await delay(ms);
      await Promise.all(victims.map(({ server }) => server.restart()));
      await delay(UNTIL_OLD);
    }),
});

const stop = (roster: Roster, kind: string, weight: number, count: number, most: number): Fault => ({
  kind,
  weight,
  run: ({ dice }, begin) =>
    roster.with(dice, count, async (victims) => {
      const ms = dice.pick([dice.int(20, 500), dice.int(500, most)]);
      begin(`${names(victims)} for ${ms} ms`);
      for (const { server } of victims) server.suspend();
      await delay(ms);
      for (const { server } of victims) server.resume();
    }),
});

/** What can happen to any server, at one of these. */
function ofAnyServer(roster: Roster): Fault[] {
  const [first] = roster.nodes;
  const at = (node: Node): readonly Fault[] => serverFaults(async () => node.admin);
  return (first ? at(first) : []).map(({ kind, weight }, place) => ({
    kind,
    weight,
    run: (field, begin) =>
      roster.withOne(field.dice, async (node) => {
        await at(node)[place]?.run(field, (detail) => begin(`${names([node])} ${detail}`));
      }),
  }));
}

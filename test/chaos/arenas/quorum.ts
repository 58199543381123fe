import { setTimeout as delay } from "node:timers/promises";
import { Masters } from "../../support/servers/masters.ts";
import { forgetfulness } from "../faults/forgetfulness.ts";
import { nodeFaults } from "../faults/nodes.ts";
import { type Node, Roster } from "../faults/roster.ts";
import { quorumOptions, UNTIL_OLD } from "../settings.ts";
import type { Arena, ArenaOptions } from "./arena.ts";
import { launch } from "./launch.ts";
import { Wires } from "./wires.ts";

/** Masters that know nothing of each other. */
export async function quorum({ workers, rate, masters: count }: ArenaOptions): Promise<Arena> {
  const launched: Awaited<ReturnType<typeof launch>>[] = [];
  // One after the other: the first may have to install what makes the clocks.
  while (launched.length < count) launched.push(await launch(rate?.() ?? null));
  const young = delay(UNTIL_OLD);
  const masters = Masters.of(launched.map(({ server }) => server));
  const minority = Math.ceil(count / 2) - 1;
  const wires = await Wires.lay(masters, workers, minority);
  const admins = await masters.admins();
  const nodes = launched.flatMap((one, place): Node[] => {
    const admin = admins[place];
    return admin ? [{ ...one, admin, number: place + 1 }] : [];
  });
  const roster = new Roster(nodes);
  await young;
  return {
    wires,
    faults: [...nodeFaults(roster), ...forgetfulness(roster)],
    faultsAtOnce: minority,
    client: quorumOptions,
    async stop() {
      await wires.stop();
      await masters.stop();
    },
  };
}

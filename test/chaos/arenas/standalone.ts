import { addressOf } from "../../support/servers/connection.ts";
import { Standalone } from "../../support/servers/standalone.ts";
import { crashes } from "../faults/crashes.ts";
import { ServerTime } from "../faults/server-time.ts";
import { serverFaults } from "../faults/servers.ts";
import type { Arena, ArenaOptions } from "./arena.ts";
import { launch } from "./launch.ts";
import { Wires } from "./wires.ts";

/**
 * What it has answered is in its log of commands; a crash of the process, not of the machine,
 * leaves it whole.
 */
const args = ["--appendonly", "yes", "--appendfsync", "no"];

/** One server. */
export async function standalone({ workers, rate }: ArenaOptions): Promise<Arena> {
  const { server, clock } = await launch(rate?.() ?? null, args);
  const topology = new Standalone({ name: "standalone", address: addressOf(server.url), server });
  const wires = await Wires.lay(topology, workers);
  const admin = await topology.adminOf();
  const time = new ServerTime(clock);
  return {
    wires,
    faults: [...serverFaults(async () => admin), ...crashes(server, admin, time), ...time.faults],
    async stop() {
      await wires.stop();
      await topology.stop();
    },
  };
}

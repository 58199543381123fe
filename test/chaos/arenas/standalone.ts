import { type LocalServer, launchServer } from "../../../tools/redis.ts";
import { launchWithClock, type ServerClock } from "../../support/server-clock.ts";
import { addressOf } from "../../support/topologies/connection.ts";
import { Standalone } from "../../support/topologies/standalone.ts";
import { crashes } from "../faults/crashes.ts";
import { ServerTime } from "../faults/server-time.ts";
import { serverFaults } from "../faults/servers.ts";
import type { Arena, ArenaOptions } from "./arena.ts";
import { Wires } from "./wires.ts";

/** What it has answered is in its log of commands; a crash of the process, not of the machine, leaves it whole. */
const args = ["--appendonly", "yes", "--appendfsync", "no"];

/** One server. */
export async function standalone({ workers, clock: wanted }: ArenaOptions): Promise<Arena> {
  const { server, clock } = await launch(wanted);
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

async function launch(hasClock: boolean): Promise<{ server: LocalServer; clock: ServerClock | null }> {
  if (!hasClock) return { server: await launchServer({ args }), clock: null };
  return launchWithClock({ args }).catch(async (error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    process.stderr.write(`The server's clock is the machine's, and will not be turned back: ${why}\n`);
    return { server: await launchServer({ args }), clock: null };
  });
}

import { join } from "node:path";
import { clockForProcess, type ServerClock } from "../../support/server-clock.ts";
import type { Fault } from "./fault.ts";

/** The wall clock of one worker. Its monotonic clock is the machine's. */
export interface WallClock {
  /** For the process. */
  readonly env: Readonly<Record<string, string>>;
  readonly fault: Fault;
}

/** Null where there is no way to give a process another one. */
export async function wallClock(folder: string, worker: number): Promise<WallClock | null> {
  try {
    const { clock, env } = await clockForProcess(join(folder, "wall-clock"));
    return { env, fault: step(clock, worker) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    process.stderr.write(`The workers' wall clocks are the machine's, and will not be stepped: ${why}\n`);
    return null;
  }
}

/** In both directions: a step of a client's wall clock is safe. Forward, its leases end too early. */
const step = (clock: ServerClock, worker: number): Fault => ({
  kind: "step a worker's wall clock",
  weight: 3,
  async run({ fleet, dice }, begin) {
    const ms = dice.pick([dice.int(-4_000, 4_000), 3_600_000, -3_600_000]);
    begin(`${fleet.members[worker]?.by}'s by ${ms} ms`);
    clock.jump(ms);
  },
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Arena, KEY_PREFIX, LOCKS, ownLock, type TopologyName } from "./arenas/arena.ts";
import { arenas } from "./arenas/index.ts";
import { check } from "./checker/index.ts";
import type { Violation } from "./checker/violation.ts";
import { watchClock } from "./clock-watch.ts";
import { Dice } from "./dice.ts";
import { Director, type Tally } from "./director.ts";
import type { Fault } from "./faults/fault.ts";
import { networkFaults } from "./faults/network.ts";
import { type WallClock, wallClock } from "./faults/wall-clock.ts";
import { workerFaults } from "./faults/workers.ts";
import { Fleet } from "./fleet.ts";
import type { Event } from "./history/events.ts";
import { readHistory } from "./history/read.ts";
import { Recorder } from "./history/recorder.ts";
import { clientOptions, clockRate, driver } from "./settings.ts";
import type { Taste, WorkerOptions } from "./worker/orders.ts";
import type { Plant } from "./worker/plants.ts";

export interface RunOptions {
  readonly topology: TopologyName;
  /**
   * Chooses the faults. With an odd one a server that is alone, and those of a quorum, have clocks
   * of their own, which run at other rates and can be turned; and a worker of one server has a wall
   * clock of its own.
   */
  readonly seed: number;
  /** How long faults happen; everybody then has some time to finish. */
  readonly seconds: number;
  readonly workers?: number;
  readonly callers?: number;
  /** What callers want; locks when left out. */
  readonly taste?: Taste;
  /** A bug that every worker gets. */
  readonly plant?: Plant;
  /** Only faults of these kinds. */
  readonly only?: readonly string[];
  /** These faults, each in a lane of its own, in place of all others. */
  readonly faults?: (arena: Arena) => readonly Fault[];
  /** So many workers, the first ones, are neither killed nor closed. */
  readonly steady?: number;
  readonly onlooker?: Onlooker;
  /** ms that everybody has to finish when the faults are over; 30 000 when left out. */
  readonly drain?: number;
  /** Told every few seconds. */
  readonly progress?: (state: { grants: number; faults: readonly string[]; seconds: number }) => void;
}

/** Looks at a run from inside. */
export interface Onlooker {
  /** When it looks, as parts of the time from 0 to 1; and at its end. All faults are over then. */
  readonly looksAt: readonly number[];
  begins(arena: Arena): Promise<void>;
  looks(fleet: Fleet): Promise<void>;
  /** All workers have ended. */
  ends(arena: Arena): Promise<void>;
}

export interface Outcome {
  readonly events: readonly Event[];
  readonly violations: readonly Violation[];
  readonly faults: Tally;
  /** Where the history is; a caller that has no use for it removes it. */
  readonly folder: string;
}

const TASTE: Taste = { shared: 0 };
const WORKERS = 4;
const DRAIN = 30_000;
const PROGRESS_EVERY = 5_000;

/** Workers fight for locks while the director lets things go wrong; then the history is checked. */
export async function run(options: RunOptions): Promise<Outcome> {
  const { workers = WORKERS, seed } = options;
  const folder = await mkdtemp(join(tmpdir(), "holdfast-chaos-"));
  const recorder = new Recorder(folder, "director");
  const hasClocks = seed % 2 === 1;
  const rates = new Dice(seed + 1);
  const arena = await arenas[options.topology]({
    workers,
    rate: hasClocks ? () => clockRate(rates) : null,
    masters: new Dice(seed).pick([3, 5]),
  });
  const last = workers - 1;
  // Not of a quorum: its tokens are times of the clients' clocks.
  const wall = hasClocks && options.topology !== "quorum" ? await wallClock(folder, last) : null;
  const fleet = new Fleet(
    Array.from({ length: workers }, (_, index) => {
      const dice = new Dice(seed + 7_919 * (index + 1));
      return {
        index,
        recorder,
        env: index === last ? wall?.env : undefined,
        options: (by: string) => workerOptions(by, index, dice, { folder, arena, options }),
      };
    }),
    options.steady,
  );
  const clock = watchClock(recorder);
  const unwatch = arena.watch?.(recorder.tell.bind(recorder));
  try {
    await options.onlooker?.begins(arena);
    const faults = await fight(arena, fleet, recorder, options, wall);
    const late = await fleet.drain(options.drain ?? DRAIN);
    recorder.tell({ is: "over" });
    if (late.length > 0) await fleet.stop();
    await options.onlooker?.ends(arena);
    const events = readHistory(folder);
    return { events, violations: check(events), faults, folder };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  } finally {
    clearInterval(clock);
    unwatch?.();
    await fleet.stop();
    await arena.stop();
  }
}

async function fight(
  arena: Arena,
  fleet: Fleet,
  recorder: Recorder,
  options: RunOptions,
  wall: WallClock | null,
): Promise<Tally> {
  const { seed, seconds, only, faults, progress, onlooker } = options;
  const isWanted = ({ kind }: { kind: string }): boolean => !only || only.includes(kind);
  const ofServers = Array<readonly Fault[]>(arena.faultsAtOnce ?? 1).fill(arena.faults);
  const ofWorkers = [...workerFaults, ...networkFaults, ...(wall ? [wall.fault] : [])];
  const usual = [...ofServers, ofWorkers].map((lane) => lane.filter(isWanted));
  const lanes = faults?.(arena).map((fault) => [fault]) ?? usual;
  const field = { fleet, wires: arena.wires, dice: new Dice(seed), tell: recorder.tell.bind(recorder) };
  const director = new Director(field, lanes);
  await fleet.start();
  const begun = performance.now();
  const timer = setInterval(() => {
    const passed = (performance.now() - begun) / 1_000;
    progress?.({ grants: fleet.grants, faults: [...director.now], seconds: passed });
  }, PROGRESS_EVERY);
  try {
    let from = 0;
    for (const to of [...(onlooker?.looksAt ?? []), 1]) {
      await director.run((to - from) * seconds * 1_000);
      await onlooker?.looks(fleet);
      from = to;
    }
  } finally {
    clearInterval(timer);
  }
  recorder.tell({ is: "draining" });
  return director.tally;
}

function workerOptions(
  by: string,
  index: number,
  dice: Dice,
  { folder, arena, options }: { folder: string; arena: Arena; options: RunOptions },
): WorkerOptions {
  const { workers = WORKERS } = options;
  return {
    by,
    folder,
    seed: dice.seed(),
    callers: options.callers ?? 5,
    locks: LOCKS,
    owns: Array.from({ length: workers }, (_, i) => ownLock((index + i) % workers)),
    taste: options.taste ?? TASTE,
    address: arena.wires.address(index),
    connect: { keyPrefix: KEY_PREFIX, driver: driver(dice) },
    client: (arena.client ?? clientOptions)(dice),
    plant: options.plant ?? null,
  };
}

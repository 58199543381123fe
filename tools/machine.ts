import { availableParallelism, loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";

/** What this machine gives a process at a moment. */
export interface Machine {
  readonly cores: number;
  /**
   * The share of all cores' time that a process gets if it wants all of it: 1 on an idle machine.
   */
  readonly share: number;
  /** How late the latest of some timers fired, in ms. */
  readonly late: number;
  readonly load: number;
}

/** ms that each of the two measurements takes. */
const SPINNING = 250;
const TIMERS = 250;
const TICK = 5;
/** More threads would not improve the measurement, and take long to start. */
const MOST_THREADS = 16;

/**
 * Below that share, or with timers that late, tests that wait for a time fail because of the
 * machine alone.
 */
const LEAST_SHARE = 0.7;
const LATEST = 100;

/** Takes about 0.6 s. */
export async function measureMachine(): Promise<Machine> {
  const cores = availableParallelism();
  return { cores, load: loadavg()[0] ?? 0, late: await latestTimer(), share: await shareOf(cores) };
}

async function latestTimer(): Promise<number> {
  const end = performance.now() + TIMERS;
  let late = 0;
  while (performance.now() < end) {
    const due = performance.now() + TICK;
    await delay(TICK);
    late = Math.max(late, performance.now() - due);
  }
  return late;
}

/**
 * A thread on each core computes for a while: on a shared machine they get less CPU time than
 * elapses.
 */
async function shareOf(cores: number): Promise<number> {
  const threads = Math.min(cores, MOST_THREADS);
  // Each reports when it runs, spins on request, and reports when it is done.
  const code = `
    const { parentPort } = require("node:worker_threads");
    parentPort.once("message", (ms) => {
      const end = performance.now() + ms;
      while (performance.now() < end);
      parentPort.postMessage("done");
    });
    parentPort.postMessage("runs");`;
  const workers = Array.from({ length: threads }, () => new Worker(code, { eval: true }));
  const all = () =>
    Promise.all(
      workers.map(
        (worker) =>
          new Promise((resolve, reject) => void worker.once("message", resolve).once("error", reject)),
      ),
    );
  try {
    await all();
    const [started, before] = [performance.now(), process.cpuUsage()];
    const done = all();
    for (const worker of workers) worker.postMessage(SPINNING);
    await done;
    const { user, system } = process.cpuUsage(before);
    return Math.min(1, (user + system) / 1_000 / (performance.now() - started) / threads);
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

export const isBusy = ({ share, late }: Machine): boolean => share < LEAST_SHARE || late > LATEST;

/**
 * Was an action in time that a program can do in time only with its share of the machine? Repeats
 * it while it was late on a busy machine. If it is late on a machine that is not busy, that is the
 * program's fault. `giveUp`: called if the machine was too busy each time; it skips the test.
 */
export async function isInTime(
  round: () => Promise<boolean>,
  giveUp: (why: string) => never,
): Promise<boolean> {
  for (let i = 0; i < ROUNDS; i++) {
    if (await round()) return true;
    const machine = await measureMachine();
    if (!isBusy(machine)) return false;
    if (i === ROUNDS - 1) giveUp(`too busy for what must be in time: ${describeMachine(machine)}`);
  }
  return false;
}

const ROUNDS = 4;

export function describeMachine({ cores, share, late, load }: Machine): string {
  return `${cores} cores, load ${load.toFixed(1)}; a process gets ${Math.round(share * 100)} % of them, timers up to ${Math.ceil(late)} ms late`;
}

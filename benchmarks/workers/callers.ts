import { setTimeout as delay } from "node:timers/promises";
import { seeded } from "../../tools/numbers.ts";
import type { Release, Session } from "../contenders/contender.ts";
import { micros } from "./clock.ts";
import { callersEach, type Job, type Load, MILESTONES, type Turns } from "./protocol.ts";
import { Samples } from "./samples.ts";
import { Troubles } from "./troubles.ts";

/** After an error a caller pauses, ms: a library that fails at once must not turn the loop into a spin. */
const AFTER_ERROR = 20;

export function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** The callers of one process, from one start to its end. */
export class Callers {
  readonly samples = new Samples();
  readonly troubles = new Troubles();
  /** What CPU time the process had used, in µs, when it reached each of the MILESTONES. */
  readonly cpuAt: number[] = [];
  timeouts = 0;
  readonly #session: Session;
  readonly #load: Load;
  readonly #seed: number;
  readonly #job: Job;

  constructor(session: Session, job: Job, load: Load) {
    this.#session = session;
    this.#load = load;
    this.#job = job;
    this.#seed = job.seed + 1_000 * job.worker;
  }

  /** Resolves when the last of them has stopped. None begins an acquisition after `until`. */
  async run(until: number): Promise<void> {
    const { tasks } = this.#load;
    const callers = this.#job.worker === 0 ? callersEach(this.#load) : tasks;
    await Promise.all(Array.from({ length: callers }, (_, caller) => this.#loop(caller, until)));
  }

  async #loop(caller: number, until: number): Promise<void> {
    const { names, own, turns, leases, hold, wait } = this.#load;
    const { worker, workers } = this.#job;
    const share = Math.floor(names.length / workers);
    const isWriter = caller >= this.#load.tasks;
    const pause = (isWriter ? this.#load.writer : null) ?? this.#load.think;
    const times = this.#load.times ?? Number.POSITIVE_INFINITY;
    const random = seeded(this.#seed + caller);
    // All at once, callers with pauses would begin with a crowd that never comes again.
    if (pause > 0) await delay(random() * pause);
    for (let i = 0; i < times && micros() < until; i++) {
      let which =
        own > 0 && random() < own
          ? worker * share + Math.floor(random() * share)
          : Math.floor(random() * names.length);
      if (turns) {
        const often = worker === 0 ? turns.first : 1;
        if (i % often === 0) await delay(Math.ceil((this.#nextTurn(turns) - micros()) / 1_000));
        which = Math.floor(micros() / (turns.every * 1_000)) % names.length;
      }
      const lease = leases[Math.floor(random() * leases.length)] ?? null;
      const asked = micros();
      let release: Release | null;
      try {
        release = await this.#session.acquire(names[which] ?? "", { wait, lease, isWriter });
      } catch (error) {
        this.troubles.add(error);
        await delay(AFTER_ERROR);
        continue;
      }
      if (!release) {
        this.timeouts++;
        continue;
      }
      const acquired = micros();
      if (hold > 0) await delay(hold);
      this.samples.push(caller, which, asked, acquired, micros());
      if (this.samples.count === MILESTONES[this.cpuAt.length]) this.cpuAt.push(cpuMicros());
      try {
        await release();
      } catch (error) {
        this.troubles.add(error);
      }
      if (pause > 0) await delay(random() * pause);
    }
  }

  /** When the next turn of this process begins, in µs. */
  #nextTurn({ every }: Turns): number {
    const { worker, workers } = this.#job;
    const offset = (every * 1_000 * (worker + 0.25)) / workers;
    const rounds = Math.floor((micros() - offset) / (every * 1_000)) + 1;
    return rounds * every * 1_000 + offset;
  }
}

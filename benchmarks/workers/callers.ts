import { setTimeout as delay } from "node:timers/promises";
import { seeded } from "../../tools/numbers.ts";
import type { Release, Session } from "../contenders/contender.ts";
import { micros } from "./clock.ts";
import type { Job, Load } from "./protocol.ts";
import { Samples } from "./samples.ts";
import { Troubles } from "./troubles.ts";

/** After an error a caller pauses, ms: a library that fails at once must not turn the loop into a spin. */
const AFTER_ERROR = 20;

/** The callers of one process, from one start to its end. */
export class Callers {
  readonly samples = new Samples();
  readonly troubles = new Troubles();
  timeouts = 0;
  readonly #session: Session;
  readonly #load: Load;
  readonly #seed: number;

  constructor(session: Session, job: Job, load: Load) {
    this.#session = session;
    this.#load = load;
    this.#seed = job.seed + 1_000 * job.worker;
  }

  /** Resolves when the last of them has stopped. None begins an acquisition after `until`. */
  async run(until: number): Promise<void> {
    await Promise.all(Array.from({ length: this.#load.tasks }, (_, caller) => this.#loop(caller, until)));
  }

  async #loop(caller: number, until: number): Promise<void> {
    const { names, leases, hold, think, wait } = this.#load;
    const times = this.#load.times ?? Number.POSITIVE_INFINITY;
    const random = seeded(this.#seed + caller);
    for (let i = 0; i < times && micros() < until; i++) {
      const which = Math.floor(random() * names.length);
      const lease = leases[Math.floor(random() * leases.length)] ?? null;
      const asked = micros();
      let release: Release | null;
      try {
        release = await this.#session.acquire(names[which] ?? "", { wait, lease });
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
      try {
        await release();
      } catch (error) {
        this.troubles.add(error);
      }
      if (think > 0) await delay(random() * think);
    }
  }
}

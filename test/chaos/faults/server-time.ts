import { setTimeout as delay } from "node:timers/promises";
import type { ServerClock } from "../../support/server-clock.ts";
import type { Fault } from "./fault.ts";

/** ms: tokens may be ahead of the server's clock by the passes that were reserved while it was behind. */
const RESERVED = 100;

/** The clock of a server, which is this machine's unless it has one of its own. */
export class ServerTime {
  readonly #clock: ServerClock | null;
  /** The latest time that it has shown, in ms, before it was turned back. */
  #latest = 0;

  constructor(clock: ServerClock | null = null) {
    this.#clock = clock;
  }

  /** ms. */
  get now(): number {
    return Date.now() + (this.#clock?.ahead ?? 0);
  }

  /** ms by which `now` may be wrong: how late a process starts, times the difference of the rates. */
  get unsure(): number {
    return this.#clock ? 15 : 1;
  }

  /** Not forward: no lock survives that whose time is Redis's, and the guarantees say so. */
  get faults(): readonly Fault[] {
    const clock = this.#clock;
    if (!clock) return [];
    const back: Fault = {
      kind: "turn the server's clock back",
      weight: 2,
      run: async ({ dice }, begin) => {
        const ms = dice.pick([dice.int(1, 50), dice.int(50, 4_000)]);
        begin(`by ${ms} ms`);
        this.#latest = Math.max(this.#latest, this.now);
        clock.jump(-ms);
      },
    };
    return [back];
  }

  /**
   * Resolves when it is later than ever. Before that, data must not get lost: tokens follow the
   * last one or the clock, and may fall when both are gone.
   */
  async caughtUp(): Promise<void> {
    await delay(Math.max(0, this.#latest + RESERVED - this.now));
  }
}

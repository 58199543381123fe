import { setTimeout as delay } from "node:timers/promises";
import { Dice } from "./dice.ts";
import type { Fault, Field } from "./faults/fault.ts";

/** ms of a storm and of the calm after it, where the time is long enough for both. */
const STORM = 60_000;
const CALM = 24_000;

/** How often each kind of fault happened. */
export type Tally = Map<string, number>;

/**
 * Lets faults happen for a while. Those of the servers and those of workers and wires come in lanes
 * of their own, so that one of each may be there at the same time. Now and then nothing happens, to
 * see whether every caller gets its turn.
 */
export class Director {
  readonly tally: Tally = new Map();
  /** What is wrong at the moment. */
  readonly now = new Set<string>();
  readonly #field: Field;
  readonly #lanes: readonly (readonly Fault[])[];
  #faults = 0;

  constructor(field: Field, lanes: readonly (readonly Fault[])[]) {
    this.#field = field;
    this.#lanes = lanes.filter((lane) => lane.length > 0);
  }

  async run(ms: number): Promise<void> {
    const end = performance.now() + ms;
    for (let left = ms; left > 0; left = end - performance.now()) {
      const hasCalm = left > STORM;
      const storm = hasCalm ? STORM - CALM : left;
      const stormEnd = performance.now() + storm;
      await Promise.all([delay(storm), ...this.#lanes.map((lane) => this.#storm(lane, stormEnd))]);
      if (hasCalm) await delay(Math.min(CALM, Math.max(0, end - performance.now())));
    }
  }

  async #storm(lane: readonly Fault[], end: number): Promise<void> {
    // Lanes do not disturb each other's choices.
    const field = { ...this.#field, dice: new Dice(this.#field.dice.seed()) };
    for (;;) {
      await delay(field.dice.pick([field.dice.int(50, 500), field.dice.int(500, 2_000)]));
      if (performance.now() >= end) return;
      await this.#happen(field.dice.weighted(lane), field);
    }
  }

  async #happen(fault: Fault, field: Field): Promise<void> {
    const { kind } = fault;
    const number = ++this.#faults;
    this.tally.set(kind, (this.tally.get(kind) ?? 0) + 1);
    this.now.add(kind);
    await fault.run(field, (detail) => field.tell({ is: "fault", number, kind, detail }));
    this.now.delete(kind);
    field.tell({ is: "healed", number, kind });
  }
}

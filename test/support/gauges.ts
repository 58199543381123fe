import type { LockClient } from "../../src/index.ts";

/**
 * How many calls wait, and how many locks are held, according to a client's events. A call waits
 * from its `wait` to its `acquire` or `giveup`. A lock is held from `acquire` to `release` or
 * `lost`, whichever comes first.
 */
export class Gauges {
  /** Violations of the rules of events. */
  readonly surprises: string[] = [];
  readonly #waiting = new Set<number>();
  readonly #held = new Set<string>();
  readonly #ended = new Set<number>();

  constructor(locks: Pick<LockClient, "on">) {
    locks.on("wait", ({ call, heldBy }) => {
      if (this.#waiting.has(call) && heldBy === "unknown") this.surprises.push(`call ${call} waits twice`);
      this.#waiting.add(call);
    });
    locks.on("acquire", ({ call, kind, name }) => {
      this.#waiting.delete(call);
      if (kind !== "multi") this.#end(call);
      this.#held.add(`${call} ${name}`);
    });
    locks.on("giveup", ({ call }) => {
      this.#waiting.delete(call);
      this.#end(call);
    });
    locks.on("release", ({ call, name }) => {
      if (!this.#held.delete(`${call} ${name}`)) this.surprises.push(`call ${call} releases what it has not`);
    });
    locks.on("lost", ({ call, name, remains }) => void (remains || this.#held.delete(`${call} ${name}`)));
  }

  get waiters(): number {
    return this.#waiting.size;
  }

  get holders(): number {
    return this.#held.size;
  }

  #end(call: number): void {
    if (this.#ended.has(call)) this.surprises.push(`call ${call} ends twice`);
    this.#ended.add(call);
  }
}

import { DelayLine } from "./delay-line.ts";

export type Direction = "to server" | "to client";

/**
 * The stages that the events of one connection pass in order: the delay of their direction, and
 * then the freeze.
 */
export class Gate {
  readonly #lines = { "to server": new DelayLine(), "to client": new DelayLine() };
  readonly #delay: (direction: Direction) => number;
  #isFrozen = false;
  #late: (() => void)[] = [];

  /** @param delay called for every event when it comes, in ms */
  constructor(delay: (direction: Direction) => number) {
    this.#delay = delay;
  }

  pass(direction: Direction, event: () => void): void {
    const unlessFrozen = () => {
      if (this.#isFrozen) this.#late.push(event);
      else event();
    };
    this.#lines[direction].push(unlessFrozen, this.#delay(direction));
  }

  /** From now on no event passes, in either direction. */
  freeze(): void {
    this.#isFrozen = true;
  }

  /** Freezes in the middle of an event: the rest of it is the first to happen after the thaw. */
  freezeBefore(rest: () => void): void {
    this.#isFrozen = true;
    this.#late.unshift(rest);
  }

  /** All events pass that came in the meantime, in order. */
  thaw(): void {
    this.#isFrozen = false;
    while (!this.#isFrozen) {
      const event = this.#late.shift();
      if (event === undefined) return;
      event();
    }
  }

  /** Delayed events do not happen any more. */
  clear(): void {
    for (const line of Object.values(this.#lines)) line.clear();
  }
}

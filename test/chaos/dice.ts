import { seeded } from "../../tools/numbers.ts";

/** Repeatable choices. */
export class Dice {
  readonly #roll: () => number;

  constructor(seed: number) {
    this.#roll = seeded(seed);
  }

  chance(probability: number): boolean {
    return this.#roll() < probability;
  }

  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.#roll() * (high - low + 1));
  }

  pick<T>(list: readonly T[]): T {
    const one = list[this.int(0, list.length - 1)];
    if (one === undefined && list.length === 0) throw new RangeError("There is nothing to pick from");
    return one as T;
  }

  /** One or more of a list, in no order. */
  some<T>(list: readonly T[]): T[] {
    const left = [...list];
    return Array.from({ length: this.int(1, list.length) }, () =>
      left.splice(this.int(0, left.length - 1), 1),
    ).flat();
  }

  /** One of a list, the more likely the greater its weight. */
  weighted<T extends { readonly weight: number }>(list: readonly T[]): T {
    let left = this.#roll() * list.reduce((sum, { weight }) => sum + weight, 0);
    for (const one of list) {
      left -= one.weight;
      if (left < 0) return one;
    }
    return this.pick(list);
  }

  /** A seed for somebody else. */
  seed(): number {
    return this.int(0, 2 ** 31);
  }
}

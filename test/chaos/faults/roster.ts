import type { Redis } from "ioredis";
import type { LocalServer } from "../../../tools/redis/index.ts";
import type { ServerClock } from "../../support/server-clock.ts";
import type { Dice } from "../dice.ts";

/** One master of a quorum. */
export interface Node {
  /** Counted from 1. */
  readonly number: number;
  readonly server: LocalServer;
  readonly admin: Redis;
  /** Its own; null: it has the machine's. */
  readonly clock: ServerClock | null;
}

/**
 * The masters of a quorum, and which of them nothing is wrong with: two faults at a time are never
 * at the same one.
 */
export class Roster {
  readonly nodes: readonly Node[];
  readonly majority: number;
  readonly #sound: Set<Node>;

  constructor(nodes: readonly Node[]) {
    this.nodes = nodes;
    this.majority = Math.floor(nodes.length / 2) + 1;
    this.#sound = new Set(nodes);
  }

  /** Does something to one sound node, or to more, as far as there are so many. */
  async with(dice: Dice, count: number, harm: (victims: readonly Node[]) => Promise<void>): Promise<void> {
    const victims: Node[] = [];
    while (victims.length < count && this.#sound.size > 0) {
      const one = dice.pick(this.nodes.filter((node) => this.#sound.has(node)));
      this.#sound.delete(one);
      victims.push(one);
    }
    try {
      await harm(victims);
    } finally {
      for (const one of victims) this.#sound.add(one);
    }
  }

  /** The same with one, or with none when there is none. */
  async withOne(dice: Dice, harm: (victim: Node) => Promise<void>): Promise<void> {
    await this.with(dice, 1, async ([victim]) => victim && harm(victim));
  }
}

export const names = (nodes: readonly Node[]): string =>
  nodes.map(({ number }) => `node ${number}`).join(", ");

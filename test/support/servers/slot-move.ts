import type { ClusterNode } from "./cluster-node.ts";

/** The stage of a move: between "opened" and "moved" both nodes hold some of the slot's keys. */
export type MoveStep = "opened" | "moved";

/**
 * A slot on its way from one primary to another, one step at a time.
 *
 * @example
 * const move = await cluster.startMove(slot, target);
 * await move.open(); // keys that are missing at the source are asked for at the target (ASK)
 * await move.keys(1); // one key has gone; commands on it and a second one say TRYAGAIN
 * await move.keys();
 * await move.close(); // from now on the source says MOVED
 */
export class SlotMove {
  readonly slot: number;
  readonly from: ClusterNode;
  readonly to: ClusterNode;
  readonly #others: readonly ClusterNode[];

  constructor(slot: number, from: ClusterNode, to: ClusterNode, others: readonly ClusterNode[]) {
    this.slot = slot;
    this.from = from;
    this.to = to;
    this.#others = others;
  }

  /**
   * The target accepts keys of the slot, and the source redirects requests for missing keys to it.
   */
  async open(): Promise<void> {
    await this.to.admin.call("CLUSTER", "SETSLOT", `${this.slot}`, "IMPORTING", this.from.id);
    await this.from.admin.call("CLUSTER", "SETSLOT", `${this.slot}`, "MIGRATING", this.to.id);
  }

  /**
   * Moves this many keys, by default all, also those that come meanwhile; returns how many it
   * moved.
   */
  async keys(atMost = Number.POSITIVE_INFINITY): Promise<number> {
    const { port } = this.to.server;
    for (let moved = 0; ; ) {
      const count = Math.min(100, atMost - moved);
      const keys = count > 0 ? await this.#keysAtSource(count) : [];
      if (keys.length === 0) return moved;
      await this.from.admin.call("MIGRATE", "127.0.0.1", `${port}`, "", "0", "5000", "KEYS", ...keys);
      moved += keys.length;
    }
  }

  /** The target owns the slot. Refused by Redis while the source holds keys of it. */
  async close(): Promise<void> {
    for (const node of [this.to, this.from, ...this.#others])
      await node.admin.call("CLUSTER", "SETSLOT", `${this.slot}`, "NODE", this.to.id);
  }

  async #keysAtSource(count: number): Promise<string[]> {
    return (await this.from.admin.call("CLUSTER", "GETKEYSINSLOT", `${this.slot}`, `${count}`)) as string[];
  }
}

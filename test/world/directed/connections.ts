import type { SimulatedWire } from "../network.ts";

/** What a cut does beside breaking connections. */
export interface CutOptions {
  /**
   * What becomes of what was sent and not executed: it is lost, arrives all the same, or so many ms
   * later. Replies are always lost. Default: "lost".
   */
  readonly copies?: "lost" | "arrive" | number;
  /** ms until there is a connection again. Default: 20. */
  readonly back?: number;
  /** ms after which the server notices. Default: 0. */
  readonly noticed?: number;
}

/** The open connections of a process of one purpose: for commands, or for messages. */
export class Connections {
  readonly #what: string;
  readonly #open: () => SimulatedWire[];
  readonly #restore: (ms: number) => void;

  /** `restore`: connects again after so many ms. */
  constructor(what: string, open: () => SimulatedWire[], restore: (ms: number) => void) {
    this.#what = what;
    this.#open = open;
    this.#restore = restore;
  }

  /** @throws if there is none: the fault would not happen. */
  #each(fault: (wire: SimulatedWire) => void): void {
    const open = this.#open();
    if (open.length === 0) throw new Error(`${this.#what}: there is no open connection`);
    for (const wire of open) fault(wire);
  }

  cut({ copies = "lost", back = 20, noticed = 0 }: CutOptions = {}): void {
    this.#each((wire) => wire.cut(copies === "arrive" ? 0 : copies, noticed));
    this.#restore(back);
  }

  /** Nothing moves for so long, in either direction; nothing is lost. */
  freeze(ms: number): void {
    this.#each((wire) => wire.freeze(ms));
  }

  /** Nothing arrives at the process for so long. */
  freezeReplies(ms: number): void {
    this.#each((wire) => wire.deafen(ms));
  }

  /** The server drops them, and the process does not notice. */
  dropUnnoticed(): void {
    this.#each((wire) => wire.abandon());
  }
}

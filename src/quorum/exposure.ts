import { EXPOSED_AFTER } from "../defaults.ts";

/**
 * Tells when a lease stands on a bare majority of the nodes, and when it does no more.
 *
 * Every race leaves its winner on a bare majority for some ms, and a node may be late once. So it is told when it has lasted
 * for a while; that it is over is told at once, and only where the other was told.
 */
export class Exposure {
  readonly #majority: number;
  readonly #tell: (has: number) => void;
  #has = 0;
  #isTold = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(majority: number, tell: (has: number) => void) {
    this.#majority = majority;
    this.#tell = tell;
  }

  /** So many nodes have the hold now. */
  update(has: number): void {
    this.#has = has;
    if (has > this.#majority) {
      this.end();
      if (this.#isTold) this.#tell(has);
      this.#isTold = false;
    } else if (!this.#isTold) this.#timer ??= setTimeout(this.#lasted, EXPOSED_AFTER).unref();
  }

  /** The lease ends, or stands on more nodes. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  readonly #lasted = (): void => {
    this.#timer = undefined;
    this.#isTold = true;
    this.#tell(this.#has);
  };
}

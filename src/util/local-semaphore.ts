import { onAbort } from "./abort.ts";
import { clearTimeout, setTimeout } from "./real-timers.ts";

/** Lets up to `capacity` borrowers in at a time, first come first served, in memory. */
export class LocalSemaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(capacity = 1) {
    this.#free = capacity;
  }

  /**
   * True: the caller is in, and must call `leave` afterwards. False: `wait` ms were over first.
   * Rejects with the signal's reason.
   */
  async enter(wait: number, signal: AbortSignal | undefined): Promise<boolean> {
    signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return true;
    }
    if (wait === 0) return false;
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.#waiting.delete(admit);
        clearTimeout(timer);
        unlisten?.();
        settle();
      };
      const admit = (): void => end(() => resolve(true));
      const giveUp = (): void => end(() => resolve(false));
      const timer = wait === Number.POSITIVE_INFINITY ? undefined : setTimeout(giveUp, wait);
      const unlisten = signal && onAbort(signal, () => end(() => reject(signal.reason)));
      this.#waiting.add(admit);
    });
  }

  leave(): void {
    const [next] = this.#waiting;
    if (next) next();
    else this.#free++;
  }
}

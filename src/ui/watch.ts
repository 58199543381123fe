import type { Listed } from "../list/listed.ts";

/** ms from one look at the locks to the next. */
const PAUSE = 2_000;
/** A look may take at most this part of the time, however many locks there are. */
const SHARE = 1 / 4;
/** More are not kept in memory. */
const MOST = 200_000;

/** The locks as they were. */
interface Survey {
  /** Counts the looks. */
  readonly number: number;
  readonly locks: readonly Listed[];
  /** When it ended, on the monotonic clock. */
  readonly at: number;
}

/** What is known at a time. */
export interface Sight {
  /** Null: nothing has been seen yet. */
  readonly survey: Survey | null;
  /** Why the last look failed; null: it did not. */
  readonly trouble: string | null;
}

/** Looks at all locks again and again, once for all viewers, and not at all while there are none. */
export class Watch {
  readonly #list: (signal: AbortSignal) => AsyncIterable<Listed>;
  readonly #viewers = new Set<(sight: Sight) => void>();
  #sight: Sight = { survey: null, trouble: null };
  #stop: AbortController | null = null;

  constructor(list: (signal: AbortSignal) => AsyncIterable<Listed>) {
    this.#list = list;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /** Tells what was seen last, if that is not old, and then each time that it has looked. Returns how to stop. */
  view(viewer: (sight: Sight) => void): () => void {
    this.#viewers.add(viewer);
    const { survey } = this.#sight;
    if (survey && performance.now() - survey.at < 2 * PAUSE) viewer(this.#sight);
    if (!this.#stop) {
      this.#stop = new AbortController();
      void this.#look(this.#stop.signal);
    }
    return () => {
      this.#viewers.delete(viewer);
      if (this.#viewers.size > 0) return;
      this.#stop?.abort();
      this.#stop = null;
    };
  }

  /** Looks now, for one that cannot be told again. */
  async once(): Promise<Sight> {
    return new Promise((resolve) => {
      const stop = this.view((sight) => {
        resolve(sight);
        queueMicrotask(() => stop());
      });
    });
  }

  async #look(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const since = performance.now();
      const sight = await this.#see(signal);
      if (signal.aborted) return;
      this.#sight = sight;
      for (const viewer of this.#viewers) viewer(sight);
      const took = performance.now() - since;
      await pause(Math.max(PAUSE, took / SHARE - took), signal);
    }
  }

  async #see(signal: AbortSignal): Promise<Sight> {
    const locks: Listed[] = [];
    try {
      for await (const one of this.#list(signal)) if (locks.push(one) === MOST) break;
    } catch (error) {
      return { survey: this.#sight.survey, trouble: error instanceof Error ? error.message : String(error) };
    }
    const number = (this.#sight.survey?.number ?? 0) + 1;
    return { survey: { number, locks, at: performance.now() }, trouble: null };
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, ms).unref();
    signal.addEventListener("abort", over);
  });
}

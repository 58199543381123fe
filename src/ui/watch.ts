import type { Listed } from "../list/listed.ts";
import { type Survey, Tally } from "./survey.ts";

/** ms from one look at the locks to the next. */
const PAUSE = 2_000;
/** ms up to the first part of a first look, which may take long. Each next one comes later: what has been seen is sent again. */
const PART = 400;

/** What is known at a time. */
export interface Sight {
  /** Null: nothing has been seen yet. */
  readonly survey: Survey | null;
  /** Why the last look failed; null: it did not. */
  readonly trouble: string | null;
}

/** Looks at locks again and again, once for all viewers, and not at all while there are none. */
export class Watch {
  readonly #list: (signal: AbortSignal) => AsyncIterable<Listed>;
  /** A look may take at most this part of the time, however many locks there are. */
  readonly #share: number;
  readonly #viewers = new Set<(sight: Sight) => void>();
  #sight: Sight = { survey: null, trouble: null };
  #stop: AbortController | null = null;

  constructor(list: (signal: AbortSignal) => AsyncIterable<Listed>, share: number) {
    this.#list = list;
    this.#share = share;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /** What was seen last, however long ago that is. */
  get survey(): Survey | null {
    return this.#sight.survey;
  }

  /** Tells what was seen last, if that is not old, and then each time that it has looked. Returns how to stop. */
  view(viewer: (sight: Sight) => void): () => void {
    this.#viewers.add(viewer);
    const { survey } = this.#sight;
    // The others see nothing newer either.
    if (survey && (this.#stop || performance.now() - survey.at < 2 * PAUSE)) viewer(this.#sight);
    else if (!this.#stop) this.#sight = { survey: null, trouble: null };
    if (!this.#stop && this.#viewers.has(viewer)) {
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

  async #look(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const since = performance.now();
      const sight = await this.#see(signal);
      if (signal.aborted) return;
      this.#tell(sight);
      const took = performance.now() - since;
      await pause(Math.max(PAUSE, took / this.#share - took), signal);
    }
  }

  #tell(sight: Sight): void {
    this.#sight = sight;
    for (const viewer of this.#viewers) viewer(sight);
  }

  async #see(signal: AbortSignal): Promise<Sight> {
    const { survey: former } = this.#sight;
    const number = (former?.number ?? 0) + 1;
    const tally = new Tally();
    let due = performance.now() + PART;
    let parts = 1;
    try {
      for await (const one of this.#list(signal)) {
        tally.add(one);
        if (former || performance.now() < due || signal.aborted) continue;
        this.#tell({ survey: tally.survey(number, true), trouble: null });
        due = performance.now() + PART * 2 ** parts++;
      }
    } catch (error) {
      // Half of a first look is better than nothing.
      return { survey: this.#sight.survey, trouble: error instanceof Error ? error.message : String(error) };
    }
    return { survey: tally.survey(number, false), trouble: null };
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

import type { Listed } from "../../index.ts";
import { LeaseLengths } from "./lease-lengths.ts";
import { type Survey, Tally } from "./survey.ts";

/** ms from one look at the locks to the next. */
const PAUSE = 2_000;
/**
 * ms up to the first part of a first look, which may take long. Each next one comes later: what has
 * been seen is sent again.
 */
const PART = 400;

/** What is known at a time. */
export interface Sight {
  /** Null: nothing has been seen yet. */
  readonly survey: Survey | null;
  /** Why the last look failed; null: it did not. */
  readonly trouble: string | null;
  /**
   * ms from `survey.at` until there should be a newer one: what takes much longer is no pace of
   * this page's.
   */
  readonly due: number;
  /** How long the leases of holds are, as far as the looks so far tell it. */
  readonly lengths: LeaseLengths;
}

/** Looks at locks again and again, once for all viewers, and not at all while there are none. */
export class Watch {
  readonly #list: (signal: AbortSignal) => AsyncIterable<Listed>;
  /** A look may take at most this part of the time, however many locks there are. */
  readonly #share: number;
  readonly #viewers = new Set<(sight: Sight) => void>();
  readonly #lengths = new LeaseLengths();
  #sight: Sight;
  #stop: AbortController | null = null;

  constructor(list: (signal: AbortSignal) => AsyncIterable<Listed>, share: number) {
    this.#list = list;
    this.#share = share;
    this.#sight = this.#nothing;
  }

  get #nothing(): Sight {
    return { survey: null, trouble: null, due: PAUSE, lengths: this.#lengths };
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /** What was seen last, however long ago that is. */
  get survey(): Survey | null {
    return this.#sight.survey;
  }

  /**
   * Tells what was seen last, or why nothing was, if that is not old, and then each time that it
   * has looked. Returns how to stop.
   */
  view(viewer: (sight: Sight) => void): () => void {
    this.#viewers.add(viewer);
    const { survey, trouble } = this.#sight;
    const isNew = this.#stop !== null || (survey !== null && performance.now() - survey.at < 2 * PAUSE);
    // The others see nothing newer either.
    if (isNew && (survey || trouble !== null)) viewer(this.#sight);
    else if (!isNew) this.#sight = this.#nothing;
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
      const took = performance.now() - since;
      // A look that has failed says nothing of how long one takes.
      const rest = sight.trouble === null ? Math.max(PAUSE, took / this.#share - took) : PAUSE;
      this.#tell(sight.trouble === null ? { ...sight, due: rest + took } : sight);
      await pause(rest, signal);
    }
  }

  #tell(sight: Sight): void {
    this.#sight = sight;
    for (const viewer of this.#viewers) viewer(sight);
  }

  async #see(signal: AbortSignal): Promise<Sight> {
    const { survey: former } = this.#sight;
    const number = (former?.number ?? 0) + 1;
    const began = performance.now();
    const tally = new Tally();
    let due = performance.now() + PART;
    let parts = 1;
    try {
      for await (const one of this.#list(signal)) {
        tally.add(one);
        if (former || performance.now() < due || signal.aborted) continue;
        const next = PART * 2 ** parts++;
        this.#tell({ ...this.#nothing, survey: tally.survey(number, true), due: next });
        due = performance.now() + next;
      }
    } catch (error) {
      // Half of a first look is better than nothing.
      const trouble = error instanceof Error ? error.message : String(error);
      return { ...this.#sight, trouble };
    }
    const survey = tally.survey(number, false);
    const holders = survey.locks.flatMap((lock) => lock.holders);
    this.#lengths.see(holders, began, survey.at);
    return { ...this.#nothing, survey };
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

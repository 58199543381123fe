import type { Listed, ListOptions } from "../../index.ts";
import { queueMicrotask } from "../../util/real-timers.ts";
import { type Sight, Watch } from "./watch.ts";

/**
 * The limits: the part of the time for looks at all locks, the part for looks at one pattern, and the
 * number of patterns at a time.
 */
const SHARE = 1 / 4;
const NARROW_SHARE = 1 / 16;
const NARROW = 8;

type List = (options: ListOptions) => AsyncIterable<Listed>;

/** The locks that a viewer wants to see. */
export type Narrow = Pick<ListOptions, "match" | "kind">;

/**
 * Looks at the locks for all viewers. It looks at all locks, once for all viewers, because the line
 * on top covers all. Where there are too many locks to keep in memory, it also looks at those that a
 * viewer wants to see, which costs Redis little more than a scan of the keys.
 */
export class Watches {
  readonly #list: List;
  readonly all: Watch;
  readonly #narrow = new Map<string, Watch>();
  #viewers = 0;

  /** `run`: which run of which server answers now; null: not known. */
  constructor(list: List, run: () => string | null) {
    this.#list = list;
    this.all = new Watch((signal) => list({ signal }), SHARE, run);
  }

  get viewers(): number {
    return this.#viewers;
  }

  /** Calls `viewer` after each look. Returns a function that stops this. */
  view(narrow: Narrow | null, viewer: (sight: Sight, isNarrow: boolean) => void): () => void {
    this.#viewers++;
    let isOver = false;
    let watch: Watch | null = null;
    let found: Sight | null = null;
    let stop = (): void => {};
    const seek = (): void => {
      if (isOver || watch || !narrow) return;
      watch = this.#of(narrow);
      if (!watch) return;
      stop = watch.view((sight) => {
        found = sight;
        viewer(sight, true);
      });
    };
    if (this.all.sight.survey?.isCut) seek();
    const stopAll = this.all.view((sight) => {
      if (isOver) return;
      if (watch) {
        // The line on top covers all locks.
        if (found) viewer(found, true);
        return;
      }
      // The locks that it wants may be among those that were not kept.
      if (narrow && sight.survey?.isCut) queueMicrotask(seek);
      viewer(sight, false);
    });
    return () => {
      if (isOver) return;
      isOver = true;
      this.#viewers--;
      stop();
      stopAll();
      for (const [key, { viewers }] of this.#narrow) if (viewers === 0) this.#narrow.delete(key);
    };
  }

  /** One look, for a viewer that gets a single answer. */
  once(narrow: Narrow | null): Promise<{ readonly sight: Sight; readonly isNarrow: boolean }> {
    return new Promise((resolve) => {
      const stop = this.view(narrow, (sight, isNarrow) => {
        if (sight.survey?.isPartial && sight.trouble === null) return;
        resolve({ sight, isNarrow });
        queueMicrotask(() => stop());
      });
    });
  }

  /** Null: the limit of patterns is reached. */
  #of({ match, kind }: Narrow): Watch | null {
    const key = JSON.stringify([match, kind]);
    const known = this.#narrow.get(key);
    if (known) return known;
    if (this.#narrow.size === NARROW) return null;
    const made = new Watch((signal) => this.#list({ match, kind, signal }), NARROW_SHARE);
    this.#narrow.set(key, made);
    return made;
  }
}

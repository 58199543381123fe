import type { Listed, ListOptions } from "../../index.ts";
import { type Sight, Watch } from "./watch.ts";

/**
 * The parts of the time that looks at all locks take at the most, and those at one pattern, of
 * which there are so many at the most.
 */
const SHARE = 1 / 4;
const NARROW_SHARE = 1 / 16;
const NARROW = 8;

type List = (options: ListOptions) => AsyncIterable<Listed>;

/** What a viewer wants to see of the locks. */
export interface Narrow extends Pick<ListOptions, "match" | "kind"> {
  /** Also where there are few locks, of which all are looked at anyway. */
  readonly always: boolean;
}

/**
 * Looks at the locks for all viewers: at all of them, once for all; and where these are too many to
 * be kept in memory, or a viewer gives a pattern, at those that fit, which costs Redis little more
 * than stepping over the keys.
 */
export class Watches {
  readonly #list: List;
  readonly all: Watch;
  readonly #narrow = new Map<string, Watch>();
  #viewers = 0;

  constructor(list: List) {
    this.#list = list;
    this.all = new Watch((signal) => list({ signal }), SHARE);
  }

  get viewers(): number {
    return this.#viewers;
  }

  /** Tells what is seen, each time. Returns how to stop. */
  view(narrow: Narrow | null, viewer: (sight: Sight, isNarrow: boolean) => void): () => void {
    this.#viewers++;
    let stop = (): void => {};
    let isOver = false;
    const narrowly = (): boolean => {
      const watch = narrow && this.#of(narrow);
      if (!watch) return false;
      stop();
      stop = watch.view((sight) => viewer(sight, true));
      return true;
    };
    if (!((narrow?.always || this.all.survey?.isCut) && narrowly())) {
      const stopAll = this.all.view((sight) => {
        if (isOver) return;
        // What it looks for may be among those that were not kept.
        if (narrow && sight.survey?.isCut) queueMicrotask(() => !isOver && narrowly());
        viewer(sight, false);
      });
      stop = stopAll;
    }
    return () => {
      if (isOver) return;
      isOver = true;
      this.#viewers--;
      stop();
      for (const [key, { viewers }] of this.#narrow) if (viewers === 0) this.#narrow.delete(key);
    };
  }

  /** Looks now, for one that cannot be told again. */
  once(narrow: Narrow | null): Promise<{ readonly sight: Sight; readonly isNarrow: boolean }> {
    return new Promise((resolve) => {
      const stop = this.view(narrow, (sight, isNarrow) => {
        if (sight.survey?.isPartial && sight.trouble === null) return;
        resolve({ sight, isNarrow });
        queueMicrotask(() => stop());
      });
    });
  }

  /** Null: so many are used already. */
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

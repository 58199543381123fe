import type { LockOptions, PermitLease, Semaphore } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import { waiting } from "../support/semaphores.ts";
import { Stage } from "../support/stage.ts";

/** One semaphore: `mine` is behind a proxy, `theirs` is another process. */
export interface Pair {
  readonly mine: Semaphore;
  readonly theirs: Semaphore;
}

/** What tests of permits need that callers of one process share. */
export class PoolStage extends Stage {
  /** Both have learned the rights of their connections, and hear messages. */
  async open(permits: number, options: { fair?: boolean; localHandoffs?: number } = {}): Promise<Pair> {
    const name = freshName();
    const [mine, theirs] = [this.near, this.far].map(({ locks }) =>
      locks.semaphore(name, { permits, ...options }),
    ) as [Semaphore, Semaphore];
    for (const [one, other] of [
      [mine, theirs],
      [theirs, mine],
    ] as const) {
      const held = await one.acquire(permits);
      const waits = other.acquire();
      await waiting(mine, 1);
      await held.release();
      await (await waits).release();
    }
    return { mine, theirs };
  }
}

/** Callers that come together while another process has all, and get so many units by one grant. */
export async function together(
  { mine, theirs }: Pair,
  permits: number,
  each: number[],
  options: LockOptions = {},
): Promise<PermitLease[]> {
  const held = await theirs.acquire(permits);
  // Behind this one the others stand in line, and the next place is for all of them.
  const first = mine.acquire(each[0], options);
  await waiting(theirs, 1);
  const others = each.slice(1).map((units) => mine.acquire(units, options));
  await held.release();
  return Promise.all([first, ...others]);
}

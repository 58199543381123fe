import type { HoldingParty } from "../../index.ts";

/** What is known of the lease of a hold, in ms. */
interface Bounds {
  /** What was left of it, by the last look. */
  readonly left: number;
  /** It is at least so long, and at most. */
  readonly least: number;
  readonly most: number;
  /** When it was seen first, or was last seen to be renewed. */
  readonly since: number;
}

/** Of its length: as much may be unknown for a bar to be shown. */
const VAGUE = 0.15;
/** ms by which clocks and their rounding may differ between two looks. */
const ROUNDING = 50;

/**
 * How long the leases of holds are. Redis has only what is left of each, so it is learned look by
 * look. No lease is longer than the time that its hold has stood and what is left, and after a
 * renewal none is longer than what is left and the time between the looks. What is left is the
 * least. Where these are close to each other, the length is known.
 */
export class LeaseLengths {
  #known = new Map<string, Bounds>();
  #began = 0;
  #ended = 0;

  /** `began`, `ended`: when this look began to ask, and ended, in ms on the monotonic clock. */
  see(
    holders: Iterable<Pick<HoldingParty, "id" | "heldFor" | "remaining">>,
    began: number,
    ended: number,
  ): void {
    const known = new Map<string, Bounds>();
    for (const { id, heldFor, remaining } of holders) {
      if (remaining === null || remaining === Number.POSITIVE_INFINITY) continue;
      const former = this.#known.get(id);
      const age = heldFor === null ? Number.POSITIVE_INFINITY : heldFor + remaining;
      known.set(id, former ? this.#next(former, remaining, age, began, ended) : first(remaining, age, ended));
    }
    this.#known = known;
    this.#began = began;
    this.#ended = ended;
  }

  /** Null: it is not known. */
  of(id: string): number | null {
    const { least, most, since } = this.#known.get(id) ?? {
      least: 0,
      most: Number.POSITIVE_INFINITY,
      since: 0,
    };
    if (most === Number.POSITIVE_INFINITY) return null;
    // The watchdog renews when a third of the lease has passed. So what was not renewed for as long never is.
    const isStill = this.#ended - since > most / 3;
    return isStill || most - least <= VAGUE * most ? most : null;
  }

  #next(former: Bounds, left: number, age: number, began: number, ended: number): Bounds {
    const isRenewed = left > former.left - Math.max(0, began - this.#ended) + ROUNDING;
    const least = Math.max(former.least, left);
    const most = Math.min(former.most, isRenewed ? left + ended - this.#began : age);
    const since = isRenewed ? ended : former.since;
    if (least <= most) return { left, least, most, since };
    // It was extended to another length.
    return { left, least: left, most: Math.min(age, left + ended - this.#began), since: ended };
  }
}

const first = (left: number, age: number, at: number): Bounds => ({
  left,
  least: left,
  most: age,
  since: at,
});

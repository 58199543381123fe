import type { HoldingParty } from "../../index.ts";

/** What is known of the lease of a hold, in ms. */
interface Bounds {
  /** The time left of it at the last look. */
  readonly left: number;
  /** Its length is between these. */
  readonly least: number;
  readonly most: number;
  /** When it was first seen, or last seen to be renewed. */
  readonly since: number;
  /** How many renewals to this length were seen. */
  readonly renewals: number;
}

/** The part of a length that may be unknown while its bar is shown. */
const VAGUE = 0.15;
/** After this many renewals to the same length a watchdog renews the lease, and will again. */
const RENEWALS = 2;
/** ms by which clocks and their rounding may differ between two looks. */
const ROUNDING = 50;

/**
 * How long the leases of holds are. Redis only has the time left of each, so the lengths are
 * learned from look to look. A lease is at least as long as its time left. It is at most as long as
 * the age of its hold plus the time left, and after a renewal at most as long as the time between
 * the looks plus the time left. If these limits are close to each other, the length is known.
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

  /** In ms; null: it is not known. */
  of(id: string): number | null {
    const { least, most, since } = this.#known.get(id) ?? {
      least: 0,
      most: Number.POSITIVE_INFINITY,
      since: 0,
    };
    if (most === Number.POSITIVE_INFINITY) return null;
    // The watchdog renews a lease when a third of it has passed. A lease that was not renewed in
    // that time is not renewed at all.
    const isStill = this.#ended - since > most / 3;
    return isStill || most - least <= VAGUE * most ? most : null;
  }

  /**
   * ms since the last renewal of a lease whose watchdog is late: less than half of the lease is
   * left, and it was renewed to this length again and again before. Null: it is not late, or that
   * is not certain.
   */
  unrenewed(id: string): number | null {
    const known = this.#known.get(id);
    if (!known || known.renewals < RENEWALS || known.left >= known.least / 2) return null;
    return Math.round(known.least - known.left);
  }

  /** ms since a renewal that was seen. Null: none was, or that is not certain. */
  renewed(id: string): number | null {
    const known = this.#known.get(id);
    return known && known.renewals > 0 && this.of(id) !== null ? Math.round(known.least - known.left) : null;
  }

  #next(former: Bounds, left: number, age: number, began: number, ended: number): Bounds {
    const isRenewed = left > former.left - Math.max(0, began - this.#ended) + ROUNDING;
    const least = Math.max(former.least, left);
    const most = Math.min(former.most, isRenewed ? left + ended - this.#began : age);
    const since = isRenewed ? ended : former.since;
    const renewals = former.renewals + Number(isRenewed);
    if (least <= most) return { left, least, most, since, renewals };
    // It was extended to another length.
    return { left, least: left, most: Math.min(age, left + ended - this.#began), since: ended, renewals: 0 };
  }
}

const first = (left: number, age: number, at: number): Bounds => ({
  left,
  least: left,
  most: age,
  since: at,
  renewals: 0,
});

import { RENEWALS_PER_LEASE } from "../defaults.ts";
import type { HolderFlag, RenewAnswer } from "../redis/replies.ts";
import { now } from "../util/clock.ts";
import { ttlFor } from "./fits.ts";
import type { Hold } from "./lease/hold.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { LockKind } from "./lock-kind.ts";
import type { Port } from "./port.ts";
import type { RedisHealth } from "./redis-health.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A renewal before a caller gets the hold: it has less time left than the caller wants, or it is
 * uncertain whether it is still ours. The caller's wait is over: the hold came in time.
 */
export class Claim {
  readonly sent = now();
  readonly flag: HolderFlag;
  /** The label of the caller that has force-released the hold meanwhile. */
  revokedBy: string | null = null;
  readonly #place: Claiming;
  readonly #ttl: number;
  readonly #within: number;

  /** `last`: the caller that had it before, in this process; null: Redis has just given it. */
  constructor(
    place: Claiming,
    readonly hold: Hold,
    readonly caller: Waiter,
    readonly last: SharedLease | null,
  ) {
    const { kind, context, resource } = place;
    const { window } = context;
    const { terms, isUnanswered, at } = caller;
    this.#place = place;
    // If this process died, others would wait for all that is asked for.
    const isShort = hold.lingers || (kind.hasStays && last !== null);
    this.#ttl = isShort ? ttlFor(terms, context.stays.window) : terms.lease;
    const most = window / RENEWALS_PER_LEASE;
    // For a caller that has just come this is its first command, with a first command's time limit.
    this.#within = last && isUnanswered ? Math.min(most, Math.max(1, at - this.sent.mono)) : most;
    const isTold = kind.hasStays && resource.isHeard;
    this.flag = isTold ? (terms.linger > 0 ? 2 : 1) : 0;
  }

  async send(): Promise<void> {
    const { kind, health, context } = this.#place;
    const { hold, sent } = this;
    hold.asks(this.#ttl, sent.mono);
    health.asked(sent.mono);
    try {
      const answer = await kind.confirm(hold, this.#ttl, this.#within, this.flag);
      health.answered();
      context.events.step(() => this.#place.claimed(this, answer));
    } catch (error) {
      context.events.step(() => this.#place.unclaimed(this, error));
    }
  }
}

/** The place that has the hold. */
interface Claiming {
  readonly kind: LockKind;
  readonly context: Port;
  readonly health: RedisHealth;
  readonly resource: { readonly isHeard: boolean };
  claimed(claim: Claim, answer: RenewAnswer): void;
  /** It was not answered. */
  unclaimed(claim: Claim, error: unknown): void;
}

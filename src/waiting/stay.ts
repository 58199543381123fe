// A stay: one hold that owns the lock, in which callers of this process come and go. Protects the other processes from one that
// goes on by what it remembers: past its deadline, behind a lost key, or while they wait.
import { PASS_TIME } from "../defaults.ts";
import type { EventKind } from "../events.ts";
import type { Hold } from "../lease/hold.ts";
import type { Turn } from "../lease/shared-lease.ts";
import type { Terms } from "../options.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import type { Instant } from "../util/clock.ts";
import { suits } from "./handover.ts";
import type { LockKind } from "./lock-kind.ts";

/** Where the callers come and go. */
export interface StayPlace {
  readonly kind: LockKind;
  /** The stay that goes on there. */
  readonly stay: Stay | null;
  /** A renewal of its hold was answered. */
  renewed(hold: Hold, sent: Instant, answer: RenewAnswer): void;
  /** The event loop has turned: the next caller may come. */
  rested(stay: Stay): void;
}

/**
 * What is remembered of a stay besides its hold. It is made for the second caller: most holds have one only.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | inside | ours until the deadline | unlock: a caller waits here → the next one is inside, at once, behind a turn of the event loop, or asking · else → ended |
 * | asking | the same; a caller waits for the answer to a renewal | it may begin → inside · wanted, no token → ended, by a yield · gone, taken → lost · unknown → ended |
 * | resting | the same; the event loop turns first | turned → inside, asking, ended |
 * | ended | a release, yield or leave is on its way | – |
 */
export class Stay implements Turn {
  readonly place: StayPlace;
  readonly hold: Hold;
  /** Every later holder has a token above this one, a server's time in µs. 0: no renewal has said so. */
  tokensUntil = 0;
  /** When its last renewal was sent, on the monotonic clock; and has a caller come since then, without asking? */
  sentAt: number;
  isUsed = false;
  /** The call that was inside last, and the lease that it had, in ms. */
  call = 0;
  lease = 0;

  constructor(place: StayPlace, hold: Hold) {
    this.place = place;
    this.hold = hold;
    this.sentAt = hold.seen.mono;
  }

  get isOver(): boolean {
    return this.place.stay !== this;
  }

  // What events tell about it.

  get name(): string {
    return this.hold.name;
  }

  get kind(): EventKind {
    return this.place.kind.eventKind;
  }

  get token(): number {
    return this.hold.token + this.hold.passes;
  }

  // Nobody waits for what becomes of it.

  settle(): void {}

  lostAtRelease(): void {}
}

/** The caller that would be next in a stay, and what is known of the hold. */
export interface Door {
  readonly hold: Hold;
  readonly stay: Stay | null;
  readonly terms: Terms;
  /** How often the lock may be passed on while others want it. */
  readonly passes: number;
  /** The grant window in ms. */
  readonly window: number;
  /** Does Redis say of locks of this kind whether somebody waits? */
  readonly hasStays: boolean;
  /** Can a message tell this process so? */
  readonly channel: { readonly isHeard: boolean };
}

/**
 * May the next caller of this process have a lock that is ours? "begin": without asking Redis; "ask": behind a renewal;
 * "end": no, others come first. Asked at every door by which a caller comes into a stay.
 */
export function mayBegin(door: Door, mono: number, wall: number): "begin" | "ask" | "end" {
  const { hold, terms, window, hasStays, channel, passes } = door;
  if (!isWithinLimit(door, mono)) {
    // Nobody is known to want it, only because nobody was told to say so.
    const isUntold = hasStays && passes > 0 && hold.wantedAt === null && !hold.isTold;
    if (!isUntold || !channel.isHeard) return "end";
    return isTooLong(hold, terms, window, mono) ? "end" : "ask";
  }
  if (isTooLong(hold, terms, window, mono)) return "end";
  if (hasStays && !(hold.isFresh(mono, wall) && hasToken(door))) return "ask";
  const left = Math.min(hold.endMono - mono, hold.endWall - wall);
  return suits(hold, left, terms, window, false) === "enough" ? "begin" : "ask";
}

/** The same when the renewal was answered in time. What it did not bring, another one would not bring either. */
export const isMet = (door: Door): boolean =>
  !door.hasStays ||
  (hasToken(door) && (door.hold.wantedAt === null || isWithinLimit(door, performance.now())));

/**
 * Others wait for so many callers of this process, and so long. Nobody is counted while no other process wants the lock, and it
 * would tell if one did.
 */
function isWithinLimit({ hold, passes, hasStays }: Door, mono: number): boolean {
  if (hasStays && hold.isTold && hold.wantedAt === null && passes > 0) return true;
  return hold.turns < passes && mono - Math.max(hold.wantedAt ?? 0, hold.ownedAt) < PASS_TIME;
}

/**
 * Of what was asked for it, and not of what was answered: an extension may be on its way, or its answer may be lost. If this
 * process crashed, the others would wait for all of it. A new hold has a TTL of its own.
 */
function isTooLong(hold: Hold, terms: Terms, window: number, mono: number): boolean {
  const left = Math.max(hold.mayLiveUntil, hold.endMono) - mono;
  return suits(hold, left, terms, window, false) === "too much";
}

/** Each caller has a token of its own: one that was reserved with the grant, or that is not above the server's time by now. */
function hasToken({ hold, stay }: Door): boolean {
  const next = hold.token + hold.passes + 1;
  return hold.passes < hold.mayPass || next <= (stay?.tokensUntil ?? 0);
}

// A stay: one hold that owns the lock, in which callers of this process come and go. Protects the other processes from one that
// goes on by what it remembers: past its deadline, behind a lost key, or while they wait.
import { PASS_TIME } from "../defaults.ts";
import type { EventKind } from "../events.ts";
import type { Hold } from "../lease/hold.ts";
import type { Turn } from "../lease/shared-lease.ts";
import type { ReleaseAnswer, RenewAnswer, ToldDigit } from "../redis/replies.ts";
import type { Terms } from "../terms.ts";
import { clocks, type Instant } from "../util/clock.ts";
import { suits } from "./handover.ts";
import type { LockKind } from "./lock-kind.ts";

/** The lock queue in which its callers come and go. */
export interface StayHome {
  readonly kind: LockKind;
  /** The event loop has turned: the next caller may come, or there is none. */
  rested(stay: Stay): void;
  /** A renewal was answered. `told`: what it asked for. */
  stayRenewed(stay: Stay, sent: Instant, answer: RenewAnswer, told: ToldDigit | null): void;
  /** It ends, and nobody is inside. Its release is sent from outside. */
  takeLeave(stay: Stay): void;
  /** That was answered; null: it was not. */
  leaveAnswered(stay: Stay, answer: ReleaseAnswer | null, isBroken: boolean): void;
}

/** The acquisition of its hold. */
interface StayPlace {
  /** The stay that goes on there. */
  readonly stay: Stay | null;
}

/**
 * What is remembered of a stay besides its hold. It is made for the second caller: most holds have one only.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | inside | ours until the deadline | unlock: a caller waits here → the next one is inside, at once, behind a turn of the event loop, or asking · it may linger → idle · its caller may come right back → leaving · else → ended |
 * | – asking | the same; a caller waits for the answer to a renewal | it may begin → inside · wanted, no token → ended, by a yield · gone, taken → lost · unknown → ended |
 * | – resting | the same; the event loop turns first | turned → inside, asking, ended |
 * | idle | ours until the deadline, for the window at the most; nobody is inside, nothing was sent | a caller: from memory → inside, else → asking · wanted, its time over, too many, nothing is heard, the client closes → ended |
 * | leaving | the same until the end of this turn of the event loop | a caller → inside, asking · turned → ended |
 * | ended | a release, yield or leave is on its way | – |
 */
export class Stay implements Turn {
  readonly home: StayHome;
  readonly hold: Hold;
  /** Every later holder has a token above this one, a server's time in µs. 0: no renewal has said so. */
  tokensUntil = 0;
  /** When its last renewal was sent, on the monotonic clock; and has a caller come since then, without asking? */
  sentAt: number;
  isUsed = false;
  state: "inside" | "idle" | "leaving" | "ended" = "inside";
  /** Since when it is idle, and until when it may be, on the monotonic clock. */
  since = 0;
  until = 0;
  /** Since when it was idle when it was last put at the end of the line of those that are kept. */
  keptAt = 0;
  /** Has it ever been without a caller? And how often was it taken again? */
  isKept = false;
  uses = 0;
  /** What that has saved, in pairs of commands. */
  saved = 0;
  /** The first token for which Redis has not said yet that the lock was ours; and the last one when it was asked for that. */
  firstToken: number;
  sentToken: number;
  /** When a caller that would not wait was last told that somebody is inside, and had a place in the queue for that moment. */
  triedAt = Number.NEGATIVE_INFINITY;
  /** The call that was inside last, and what it asked for. */
  call = 0;
  terms: Terms = NO_TERMS;
  readonly #place: StayPlace;

  constructor(home: StayHome, place: StayPlace, hold: Hold) {
    this.home = home;
    this.#place = place;
    this.hold = hold;
    this.sentAt = hold.seen.mono;
    this.firstToken = hold.token;
    this.sentToken = hold.token;
  }

  /** A renewal is sent. Its answer is about the caller that is inside by now. */
  asks(at: number): void {
    this.sentAt = at;
    this.sentToken = this.token;
  }

  get isOver(): boolean {
    return this.#place.stay !== this;
  }

  // What events tell about it.

  get name(): string {
    return this.hold.name;
  }

  get kind(): EventKind {
    return this.home.kind.eventKind;
  }

  get token(): number {
    return this.hold.token + this.hold.passes;
  }

  // Nobody waits for what becomes of it.

  settle(): void {}

  lostAtRelease(): void {}
}

const NO_TERMS: Terms = { lease: 0, watchdog: true, maxHold: Number.POSITIVE_INFINITY, linger: 0 };

/**
 * What a hold is raised to for a caller, in ms. A watchdog's lease is claimed when its caller stays for longer. Of what may
 * linger it is the window, `most`: if this process died, others would wait for all of it for a lock that nobody uses.
 */
export function ttlOf({ lease, watchdog, linger }: Terms, most: number): number {
  if (linger > 0) return watchdog ? most : Math.max(lease, most);
  return watchdog ? Math.min(lease, most) : lease;
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
  /** Could a message tell this process so? */
  readonly inbox: { hears(name: string): boolean };
}

/**
 * May the next caller of this process have a lock that is ours? "begin": without asking Redis; "ask": behind a renewal;
 * "end": no, others come first. Asked at every door by which a caller comes into a stay.
 */
export function mayBegin(door: Door, mono: number, wall: number): "begin" | "ask" | "end" {
  const { hold, stay, terms, window, hasStays, inbox, passes } = door;
  const left = Math.min(hold.endMono - mono, hold.endWall - wall);
  // This process stood still. RACE: a renewal would be answered "yours" until Redis ends the key, and nobody could tell for how
  // long that is true.
  if (left <= 0) return "end";
  // Nobody waits here, and somebody does elsewhere.
  if (stay?.state === "idle" && hold.wantedAt !== null) return "end";
  if (!isWithinLimit(door, mono)) {
    // Nobody is known to want it, only because nobody was told to say so.
    const isUntold = hasStays && passes > 0 && hold.wantedAt === null && hold.told === 0;
    if (!isUntold || !inbox.hears(hold.name)) return "end";
    return isTooLong(hold, terms, window, mono) ? "end" : "ask";
  }
  if (isTooLong(hold, terms, window, mono)) return "end";
  if (hasStays && !(hold.isFresh(mono, wall) && hasToken(door))) return "ask";
  // By another object of the same lock, which does without lingering: it is told by Redis that the lock is held.
  if (stay?.isKept && terms.linger === 0) return "ask";
  return suits(hold, left, terms, window, false) === "enough" ? "begin" : "ask";
}

/** The same when the renewal was answered in time. What it did not bring, another one would not bring either. */
export const isMet = (door: Door): boolean =>
  !door.hasStays ||
  (hasToken(door) && (door.hold.wantedAt === null || isWithinLimit(door, clocks.mono.now())));

/**
 * Others wait for so many callers of this process, and so long. Nobody is counted while no other process wants the lock, and it
 * would tell if one did.
 */
function isWithinLimit({ hold, stay, passes, hasStays }: Door, mono: number): boolean {
  const isEndless = passes > 0 || stay?.state === "idle";
  if (hasStays && hold.told > 0 && hold.wantedAt === null && isEndless) return true;
  return hold.turns < passes && mono - Math.max(hold.wantedAt ?? 0, hold.ownedAt) < PASS_TIME;
}

/**
 * Of what was asked for it, and not of what was answered: an extension may be on its way, or its answer may be lost. If this
 * process crashed, the others would wait for all of it. A new hold has a TTL of its own.
 */
export function isTooLong(hold: Hold, terms: Terms, window: number, mono: number): boolean {
  const left = Math.max(hold.mayLiveUntil, hold.endMono) - mono;
  return suits(hold, left, terms, window, false) === "too much";
}

/** Each caller has a token of its own: one that was reserved with the grant, or that is not above the server's time by now. */
function hasToken({ hold, stay }: Door): boolean {
  const next = hold.token + hold.passes + 1;
  return hold.passes < hold.mayPass || next <= (stay?.tokensUntil ?? 0);
}

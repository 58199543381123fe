import { CLOCK_DRIFT, CLOCK_GRAIN, FRESH, GRANT_WINDOW } from "../../defaults.ts";
import type { HolderFlag } from "../../redis/replies.ts";
import { clocks, type Instant, NEVER } from "../../util/clock.ts";

/**
 * One owner or waiter in Redis: one attempt, with the queueing after it, or one yield.
 * R1: its id is used for nothing else, ever. Scopes, local hand-offs and re-entries happen inside one hold
 * and are invisible to Redis.
 *
 * It computes until when it is surely ours, on this process's clocks, whether or not Redis can be
 * reached. Redis counts a TTL from the moment at which its script ran. On our clock we know only an
 * earlier moment: t, when a command was sent, together with S, the server's time when that command
 * ran. A TTL that was set at server time S_g ends, on our clock, no earlier than t + (S_g − S) +
 * TTL. A hundredth is taken off for clocks that run at different rates, and 2 ms for Redis's whole
 * milliseconds. The end only moves forward.
 */
export class Hold {
  readonly id: string;
  readonly name: string;
  /** Its number among its client's holds, which is part of the id; 0: it gets no messages. */
  readonly number: number;
  /**
   * The label of the caller that asked for it, after a space, as Redis stores it after the id; "":
   * none, as for nearly all.
   */
  declare readonly label: string;
  /** When the first command that names it was sent. */
  readonly sent: Instant;
  /** The fencing token of its grant; local hand-offs add to it. */
  token = 0;
  /** The TTL that Redis was last known to set, in ms: the grant window until a claim raised it. */
  ttl = 0;
  /**
   * The longest TTL that was ever requested for it, in ms. Redis may have set it, whether or not it
   * has answered.
   */
  mayLive = 0;
  /**
   * Until when it may live, on the monotonic clock, by every request made for it, answered or not.
   */
  mayLiveUntil = 0;
  /**
   * When the last command was sent that Redis answered with "ours", and with whether another caller
   * waits; for a grant, when it was made. For a while after that no round trip is needed
   * (`isFresh`).
   */
  seen = NEVER;
  /**
   * What the lock's value says about this process, as Redis reported it. 1, 2: a message notifies
   * it when another caller begins to wait.
   */
  flag: HolderFlag = 0;
  /** It was acquired for the window only, because it may stay with this process when it is unlocked. */
  lingers = false;
  /**
   * Since when another process wants the lock, or may want it. Null: none does. Set until the hold
   * ends.
   */
  wantedAt: number | null = null;
  /** Since when another process has reported that it waits. Null: none has. */
  recalledAt: number | null = null;
  /** When a caller that does not wait was last told that a caller is inside. 0: never. */
  triedAt = 0;
  /** It was force-released: no caller may have it any more. */
  isRevoked = false;
  /**
   * How many local hand-offs it allows; and for how many of them tokens are reserved, at least,
   * whichever of its commands has won.
   */
  mayPass = UNLIMITED;
  reserved = UNLIMITED;
  /**
   * Its queue entry up to its id, as first sent: every later command names this one, whatever a
   * later caller wants. Empty: it was never to be queued.
   */
  entry = "";
  /**
   * Local hand-offs made; how many of them count against the limit; and when the lock came here, on
   * the monotonic clock.
   */
  passes = 0;
  turns = 0;
  ownedAt = 0;
  /**
   * When it ends on each clock, of which the earlier one counts; and when the command was sent
   * whose answer gave S. Read-only elsewhere.
   */
  endMono = Number.NEGATIVE_INFINITY;
  endWall = Number.NEGATIVE_INFINITY;
  asked: Instant;
  /**
   * S in µs; null until a reply gave it. Then S_g − S counts as 0, which is too early and therefore
   * safe.
   */
  #server: number | null = null;

  /** Construct it just before the command that names it is sent. */
  constructor(id: string, name: string, number = 0) {
    this.id = id;
    this.name = name;
    this.number = number;
    this.sent = { mono: clocks.mono.now(), wall: clocks.wall.now() };
    this.asked = this.sent;
  }

  /**
   * A command is sent that may set its TTL to this. Recorded now and not with the answer: the
   * answer may be lost, and the hold must then be withdrawn for as long as it can live.
   */
  asks(ttl: number, at = clocks.mono.now()): void {
    if (ttl > this.mayLive) this.mayLive = ttl;
    if (at + ttl > this.mayLiveUntil) this.mayLiveUntil = at + ttl;
  }

  /**
   * Can a script have granted this? The TTL is at most the requested one, or a window for a client
   * without messages.
   */
  fits({ ttl }: Grant): boolean {
    return ttl <= Math.max(this.mayLive, GRANT_WINDOW);
  }

  /**
   * A command that names it was answered. R4: (t, S) is one pair, replaced only by an answer. If t
   * moved when a re-check was sent, a grant that ran before it would get a deadline after its key's
   * end.
   */
  answered(sent: Instant, serverMicros: number): void {
    this.asked = sent;
    this.#server = serverMicros;
  }

  /**
   * It owns the lock from now on, for a TTL that was set at the server's time of the grant. Its end
   * is never later than received + TTL. `sent`: when the answered command was sent; null: it is a
   * message. `flag`: what the lock's value has said since then.
   */
  owned(
    { at, ttl, token, waits }: Grant,
    sent: Instant | null,
    flag: HolderFlag = 0,
    mono = clocks.mono.now(),
    wall = clocks.wall.now(),
  ): void {
    if (sent) this.asked = sent;
    const server = sent ? at : this.#server;
    const since = server === null ? 0 : (at - server) / 1_000;
    const span = (since + ttl) * (1 - CLOCK_DRIFT) - CLOCK_GRAIN;
    this.endMono = Math.max(this.endMono, Math.min(this.asked.mono + span, mono + ttl));
    this.endWall = Math.max(this.endWall, Math.min(this.asked.wall + span, wall + ttl));
    this.token = token;
    if (ttl > this.ttl) this.ttl = ttl;
    if (ttl > this.mayLive) this.mayLive = ttl;
    this.mayLiveUntil = Math.max(this.mayLiveUntil, mono + ttl);
    this.ownedAt = mono;
    const { asked } = this;
    const early = since * (1 - CLOCK_DRIFT);
    this.seen = sent ?? {
      mono: Math.min(asked.mono + early, mono),
      wall: Math.min(asked.wall + early, wall),
    };
    this.flag = flag;
    if (waits) this.recall(mono);
  }

  /** Another process has reported that it waits for the lock. */
  recall(at: number): void {
    this.recalledAt ??= at;
    this.want(at);
  }

  /**
   * Another process wants the lock, or that is unknown: from now on local hand-offs are limited.
   */
  want(at: number): void {
    if (this.wantedAt !== null) return;
    this.wantedAt = at;
    this.turns = 0;
  }

  /**
   * Was it confirmed so recently that a caller may get it without a round trip? RACE: a lock that
   * was deleted, or that a failover lost, may have another holder by now, and no message says so.
   * This limits how long callers here continue.
   */
  isFresh(mono: number, wall: number): boolean {
    return mono < this.seen.mono + FRESH && wall < this.seen.wall + FRESH;
  }

  /**
   * A renewal sent at `sent` raised its TTL to this; `read`: when its answer came, if not just now.
   * Returns whether it counts. RACE: a copy of the acquire that the network delayed may have queued
   * the hold again, and Redis may have granted it again. An answer after the deadline may be about
   * that grant, so it does not count. `flag`: what the renewal asked for; null: nothing.
   */
  renewed(sent: Instant, { ttl, waits, told, read }: Renewed, flag: HolderFlag | null = null): boolean {
    if (this.left(read?.mono, read?.wall) <= 0) return false;
    this.lasts(sent, ttl);
    if (ttl > this.ttl) this.ttl = ttl;
    // RACE: a claim may be sent long after the grant, and say nothing about waiters.
    if (waits !== undefined && sent.mono > this.seen.mono) this.seen = sent;
    if (told) this.flag = flag || this.flag || 1;
    if (waits) this.recall(clocks.mono.now());
    return true;
  }

  /** A command sent at `sent` has set its TTL to this. */
  lasts(sent: Instant, ttl: number): void {
    const span = ttl * (1 - CLOCK_DRIFT) - CLOCK_GRAIN;
    this.endMono = Math.max(this.endMono, sent.mono + span);
    this.endWall = Math.max(this.endWall, sent.wall + span);
  }

  /** ms until it may no longer be ours, negative after that. The earlier of both clocks counts. */
  left(mono = clocks.mono.now(), wall = clocks.wall.now()): number {
    return Math.min(this.endMono - mono, this.endWall - wall);
  }
}

/** More than any lock allows. V8 stores a number of 31 bits in a field, and a larger one beside it. */
const UNLIMITED = 2 ** 30;

/**
 * A lock became ours: the server's time in µs when its TTL was set, that TTL in ms, the token, and
 * whether another caller waited then. From a reply or a message.
 */
export interface Grant {
  readonly at: number;
  readonly ttl: number;
  readonly token: number;
  readonly waits: boolean;
  /** For permits: how many. Left out: as many as requested. */
  readonly units?: number;
}

/** Redis's answer to a renewal. `waits`: does another caller wait? Undefined: unknown. */
export interface Renewed {
  readonly ttl: number;
  readonly waits?: boolean;
  /** Is the holder notified of waiters from now on? Undefined or 0: it is not. */
  readonly told?: HolderFlag;
  /** When it was read, if not just now. */
  readonly read?: Instant;
}

// Shared default on the prototype: saves a field per unlabelled hold.
Object.assign(Hold.prototype, { label: "" });

/** A hold for a caller with a label. */
export class LabelledHold extends Hold {
  override readonly label: string;

  constructor(id: string, name: string, number: number, label: string) {
    super(id, name, number);
    this.label = label;
  }
}

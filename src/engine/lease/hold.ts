import { CLOCK_DRIFT, CLOCK_GRAIN, FRESH, GRANT_WINDOW } from "../../defaults.ts";
import type { HolderFlag } from "../../redis/replies.ts";
import { clocks, type Instant, NEVER } from "../../util/clock.ts";

/**
 * What Redis knows as an owner or a waiter: one attempt, with the queueing behind it, or one yield.
 * R1: its id is used for nothing else, ever. Scopes, passes and re-entries happen inside one hold
 * and are invisible to Redis.
 *
 * It knows how long it is surely ours, on this process's clocks, whatever Redis does and whether or
 * not it can be reached. Redis counts a TTL from the moment at which its script ran. We do not know
 * that moment on our clock, but we know an earlier one: t, when a command was sent, together with
 * S, the server's time when that command ran. A TTL that was set at server time S_g ends, on our
 * clock, no earlier than t + (S_g − S) + TTL. A hundredth is taken off for clocks that run at
 * different rates, and 2 ms for Redis's whole milliseconds. The end only moves forward.
 */
export class Hold {
  readonly id: string;
  readonly name: string;
  /**
   * The label of the caller for which it was asked, behind a space, as Redis has it behind the id;
   * "": none, as of nearly all.
   */
  declare readonly label: string;
  /** When the command was sent that names it first. */
  readonly sent: Instant;
  /** The fencing token of its grant; passes add to it. */
  token = 0;
  /** The TTL that Redis was last known to set, in ms: the grant window until a claim raised it. */
  ttl = 0;
  /**
   * The longest TTL that was ever asked for it, in ms: what Redis may have set, whether or not it
   * has said so.
   */
  mayLive = 0;
  /** By all that was ever asked for it, answered or not, it may live until then, on the monotonic clock. */
  mayLiveUntil = 0;
  /**
   * When the last command was sent to which Redis has said that it is ours; a grant counts from
   * when that was made. Nobody is asked for a while after that (`isFresh`).
   */
  seen = NEVER;
  /**
   * What the lock's value says of this process, as Redis has said: 1, 2: a message tells when
   * somebody begins to wait.
   */
  flag: HolderFlag = 0;
  /** It was acquired for the window only, because it may stay with this process when it is unlocked. */
  lingers = false;
  /**
   * Since when somebody else wants the lock, or may want it. Null: nobody does. It stays so to the
   * end of the hold.
   */
  wantedAt: number | null = null;
  /** Since when somebody has said that it waits for the lock. Null: nobody has. */
  recalledAt: number | null = null;
  /** It was released by force: nobody may have it any more. */
  isRevoked = false;
  /**
   * What its kind knows of it besides: of a quorum lock, what each node has said. Nobody else looks
   * at it.
   */
  record: object | null = null;
  /** How often it may be passed on. */
  mayPass = Number.POSITIVE_INFINITY;
  /**
   * Its entry in the queue up to its id, as it was first sent: every later command names this one,
   * whatever a caller behind the first wants. Empty: it was never told to queue.
   */
  entry = "";
  /**
   * Passes made; how many of them count against the limit of passes; and when the lock came here,
   * on the monotonic clock.
   */
  passes = 0;
  turns = 0;
  ownedAt = 0;
  /**
   * When it is over on each clock, the earlier one counts; and when the command was sent whose
   * answer told S. Only read elsewhere.
   */
  endMono = Number.NEGATIVE_INFINITY;
  endWall = Number.NEGATIVE_INFINITY;
  asked: Instant;
  /** S in µs; 0 until a reply told it. Then S_g − S counts as 0, which is too early and therefore safe. */
  #server = 0;

  /** To be made just before that command is sent. */
  constructor(id: string, name: string) {
    this.id = id;
    this.name = name;
    this.sent = { mono: clocks.mono.now(), wall: clocks.wall.now() };
    this.asked = this.sent;
  }

  /**
   * A command is sent that may set its TTL to this. Not noted when it is answered: the answer may
   * be lost, and the hold must then be taken back for as long as it can live.
   */
  asks(ttl: number, at = clocks.mono.now()): void {
    if (ttl > this.mayLive) this.mayLive = ttl;
    if (at + ttl > this.mayLiveUntil) this.mayLiveUntil = at + ttl;
  }

  /**
   * Can a script have granted it so? For no longer than was asked for; a client that hears nothing
   * may get a window.
   */
  fits({ ttl }: Grant): boolean {
    return ttl <= Math.max(this.mayLive, GRANT_WINDOW);
  }

  /**
   * A command that names it was answered. R4: (t, S) is one pair and is replaced only by an answer.
   * If t moved when a re-check is sent, a grant that was executed before it would get a deadline
   * after its key.
   */
  answered(sent: Instant, serverMicros: number): void {
    this.asked = sent;
    this.#server = serverMicros;
  }

  /**
   * It owns the lock from now on, for a TTL that was set at the server's time of the grant. Never
   * later than received + TTL. `sent`: when the command was sent that this answers; null: it is a
   * message. `told`: what the lock's value says since then.
   */
  owned({ at, ttl, token, waits }: Grant, sent: Instant | null, flag: HolderFlag = 0): void {
    if (sent) {
      this.asked = sent;
      this.#server = at;
    }
    const mono = clocks.mono.now();
    const wall = clocks.wall.now();
    const since = this.#server === 0 ? 0 : (at - this.#server) / 1_000;
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

  /** Somebody else waits for the lock, and has said so. */
  recall(at: number): void {
    this.recalledAt ??= at;
    this.want(at);
  }

  /** Somebody else wants the lock, or nobody can tell: from now on its passes are limited. */
  want(at: number): void {
    if (this.wantedAt !== null) return;
    this.wantedAt = at;
    this.turns = 0;
  }

  /**
   * Was it ours so lately that a caller may get it without asking Redis? RACE: a lock that was
   * deleted, or that a failover has forgotten, is somebody else's by now, and nobody tells us. This
   * bounds how long callers here go on.
   */
  isFresh(mono: number, wall: number): boolean {
    return mono < this.seen.mono + FRESH && wall < this.seen.wall + FRESH;
  }

  /**
   * A renewal that was sent then raised its TTL to this; `read`: when its answer came, if not just
   * now. Returns whether it counts. RACE: a copy of the acquire that the network kept may have
   * queued the hold again, and it may have been granted again. So what is answered after the
   * deadline may be about that grant, and does not count. `told`: what it asked for; null: nothing.
   */
  renewed(sent: Instant, { ttl, waits, isTold, read }: Renewed, flag: HolderFlag | null = null): boolean {
    if (this.left(read?.mono, read?.wall) <= 0) return false;
    this.lasts(sent, ttl);
    if (ttl > this.ttl) this.ttl = ttl;
    if (sent.mono > this.seen.mono) this.seen = sent;
    if (isTold) this.flag = flag || this.flag || 1;
    if (waits) this.recall(clocks.mono.now());
    return true;
  }

  /** A command that was sent then has set its TTL to this. */
  lasts(sent: Instant, ttl: number): void {
    const span = ttl * (1 - CLOCK_DRIFT) - CLOCK_GRAIN;
    this.endMono = Math.max(this.endMono, sent.mono + span);
    this.endWall = Math.max(this.endWall, sent.wall + span);
  }

  /** ms until it is surely ours no more, negative after that. The earlier of both clocks counts. */
  left(mono = clocks.mono.now(), wall = clocks.wall.now()): number {
    return Math.min(this.endMono - mono, this.endWall - wall);
  }
}

/**
 * A lock became ours: the server's time in µs when its TTL was set, that TTL in ms, the token, and
 * whether anybody else waited then. From a reply or a message.
 */
export interface Grant {
  readonly at: number;
  readonly ttl: number;
  readonly token: number;
  readonly waits: boolean;
  /** Of permits: how many. Left out: as many as were asked for. */
  readonly units?: number;
}

/** What Redis said to a renewal. `waits`: does anybody else wait? Null: nothing is said about that. */
export interface Renewed {
  readonly ttl: number;
  readonly waits: boolean | null;
  /** Is the holder told of waiters from now on? */
  readonly isTold: boolean;
  /** When it was read, if not just now. */
  readonly read?: Instant;
}

// One text for all that have no label, and no field in any of them.
Object.assign(Hold.prototype, { label: "" });

/** A hold that was asked for by a caller with a label. */
export class LabelledHold extends Hold {
  override readonly label: string;

  constructor(id: string, name: string, label: string) {
    super(id, name);
    this.label = label;
  }
}

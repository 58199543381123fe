import { GRANT_WINDOW } from "../defaults.ts";
import type { Instant } from "../util/clock.ts";
import type { SharedLease } from "./shared-lease.ts";
import { Validity } from "./validity.ts";

/** A lock became ours: the server's time in µs when its TTL was set, that TTL in ms, and the token. From a reply or a message. */
export interface Grant {
  readonly at: number;
  readonly ttl: number;
  readonly token: number;
}

/**
 * What Redis knows as an owner or a waiter: one attempt, with the queueing behind it, or one yield. R1: its id is used for
 * nothing else, ever. Scopes, passes and re-entries happen inside one hold and are invisible to Redis.
 */
export class Hold {
  readonly id: string;
  readonly name: string;
  readonly sent: Instant;
  readonly validity: Validity;
  /** The fencing token of its grant; passes add to it. */
  token = 0;
  /** The TTL that Redis was last known to set, in ms: the grant window until a claim raised it. */
  ttl = 0;
  /** The longest TTL that was ever asked for it, in ms: what Redis may have set, whether or not it has said so. */
  mayLive = 0;
  /** It was released by force: nobody may have it any more. */
  isRevoked = false;
  /** What its kind knows of it besides: of a quorum lock, what each node has said. Nobody else looks at it. */
  record: object | null = null;
  /** How often it may be passed on. */
  mayPass = Number.POSITIVE_INFINITY;
  /**
   * Its entry in the queue, as it was first sent: every later command names this one, whatever a caller behind the first
   * wants. Empty: it was never told to queue.
   */
  entry = "";
  /** The last one that was given with it. */
  tenure: SharedLease | null = null;
  /** Passes made, and when the lock came here, on the monotonic clock. */
  passes = 0;
  ownedAt = 0;

  constructor(id: string, name: string, sent: Instant) {
    this.id = id;
    this.name = name;
    this.sent = sent;
    this.validity = new Validity(sent);
  }

  /** Can a script have granted it so? For no longer than was asked for; unheard it may be for a window (RACE 12). */
  fits({ ttl }: Grant): boolean {
    return ttl <= Math.max(this.mayLive, GRANT_WINDOW);
  }

  /** It owns the lock from now on. */
  owned(grant: Grant): void {
    this.validity.granted(grant.at, grant.ttl);
    this.token = grant.token;
    this.ttl = Math.max(this.ttl, grant.ttl);
    this.asks(grant.ttl);
    this.ownedAt = performance.now();
  }

  /**
   * A command is sent that may set its TTL to this. RACE 10: not when it is answered, for its answer may be lost, and the
   * hold must then be taken back for as long as it can live.
   */
  asks(ttl: number): void {
    this.mayLive = Math.max(this.mayLive, ttl);
  }

  /**
   * A renewal that was sent then raised its TTL to this; `read`: when its answer came, if not just now. Returns whether it
   * counts. RACE 5: a copy of the acquire that the network kept may have queued the hold again, and it may have been granted
   * again: what is answered after the deadline may be about that grant.
   */
  renewed(sent: Instant, { ttl, read }: { readonly ttl: number; readonly read?: Instant }): boolean {
    if (this.validity.left(read) <= 0) return false;
    this.validity.renewed(sent, ttl);
    this.ttl = Math.max(this.ttl, ttl);
    return true;
  }
}

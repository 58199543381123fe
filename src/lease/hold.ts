import type { Instant } from "./clock.ts";
import { Validity } from "./validity.ts";

/** A lock became ours: the server's time in µs when its TTL was set, that TTL in ms, and the token. From a reply or a message. */
export interface Grant {
  readonly at: number;
  readonly ttl: number;
  readonly token: number;
}

/**
 * What Redis knows as an owner or a waiter: one attempt, one place in the queue, one yield. R1: its id is used for
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
  /** It was released by force: nobody may have it any more. */
  isRevoked = false;
  /** Passes made, and when the lock came here, on the monotonic clock. */
  passes = 0;
  ownedAt = 0;

  constructor(id: string, name: string, sent: Instant) {
    this.id = id;
    this.name = name;
    this.sent = sent;
    this.validity = new Validity(sent);
  }

  /** It owns the lock from now on. */
  owned(grant: Grant): void {
    this.validity.granted(grant.at, grant.ttl);
    this.token = grant.token;
    this.ttl = Math.max(this.ttl, grant.ttl);
    this.ownedAt = performance.now();
  }

  /** A renewal that was sent then raised its TTL to this. */
  renewed(sent: Instant, ttl: number): void {
    this.validity.renewed(sent, ttl);
    this.ttl = Math.max(this.ttl, ttl);
  }
}

import type { Instant } from "./clock.ts";
import { Validity } from "./validity.ts";

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
  /** Passes made, and when the lock came here, on the monotonic clock. */
  passes = 0;
  ownedAt = 0;

  constructor(id: string, name: string, sent: Instant) {
    this.id = id;
    this.name = name;
    this.sent = sent;
    this.validity = new Validity(sent);
  }
}

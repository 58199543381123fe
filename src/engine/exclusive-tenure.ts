import type { LockLostError } from "../api/errors.ts";
import { next, type Possession } from "../core/next.ts";
import { tellAcquired, tellLost, tellReleased } from "../core/telling.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import { clocks, type Instant } from "../util/clock.ts";
import { isEnding } from "../util/process-end.ts";
import type { Acquisition } from "./acquisition.ts";
import type { Hold } from "./lease/hold.ts";
import { DONE } from "./lease/release-outcome.ts";
import type { Departure, SharedLease } from "./lease/shared-lease.ts";
import { Tenure, type TenureHome } from "./tenure.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A lock that one caller has at a time. Local hand-offs pass it between callers of this process, if
 * its kind allows that.
 */
export class ExclusiveTenure extends Tenure implements Possession {
  // Its kinds keep no lock.
  readonly isKept = false;
  readonly keeping = null;
  readonly tokensUntil = 0;
  readonly isOpen = false;
  readonly #one: Acquisition;

  constructor(lock: TenureHome, one: Acquisition, hold: Hold) {
    super(lock, hold);
    this.#one = one;
    this.firstToken = hold.token;
  }

  get holder(): SharedLease | null {
    for (const user of this.users) return user;
    return null;
  }

  // ---- callers come

  protected give(one: Acquisition, waiter: Waiter): void {
    const lease = this.enter(waiter.terms, waiter);
    this.letIn(one, waiter, lease);
    const { line } = one;
    if (line.first) {
      line.tellBusy();
      if (line.first) this.lock.channel.listen();
    }
    // RACE: last, because a listener may take so long that the lease is over, or make a call: then
    // the lock is being asked for already, and "held" would be wrong.
    if (this.context.events.isUsed)
      tellAcquired(this.context.events, lease, clocks.mono.now() - waiter.since, this.hold.passes > 0, false);
  }

  takeIn(): null {
    return null;
  }

  lineFormed(): void {}

  /**
   * Hands the lock to the first caller in line: now, or after a renewal. False: it must go to Redis.
   */
  #pass(): boolean {
    const waiter = this.#one.line.first;
    if (!waiter) return false;
    const mono = clocks.mono.now();
    const how = next(this.hold, this, waiter, mono, clocks.wall.now());
    if (how === "no") return false;
    if (how === "now") this.#passTo(waiter);
    else {
      // For a caller that has just come this is its first command, with a first command's time
      // limit.
      const most = this.context.window / 3;
      const within = waiter.unanswered ? Math.min(most, Math.max(1, waiter.until - mono)) : most;
      void this.claim(this.#one, waiter, waiter.terms.lease, true, within);
    }
    return true;
  }

  #passTo(waiter: Waiter): void {
    this.hold.passes++;
    this.hold.turns++;
    this.give(this.#one, waiter);
  }

  protected override giveNext(_one: Acquisition, waiter: Waiter): void {
    this.firstToken = this.hold.token + this.hold.passes;
    if (!waiter.settled) this.#passTo(waiter);
    // RACE: the process is ending: the next caller here would get the lock and never know.
    else if (isEnding || !this.#pass()) this.#release(this.nobody(), 0).catch(() => {});
  }

  // ---- its user leaves

  vacated(lease: SharedLease): Promise<void> {
    const held = this.leaves(lease);
    if (this.context.events.isUsed) tellReleased(this.context.events, lease, held);
    // RACE: the process is ending: the next caller here would get the lock and never know.
    if (lease.isConfirmed || isEnding) return this.#release(lease, held);
    if (!this.#pass()) return this.#release(lease, held);
    lease.settle();
    return DONE;
  }

  #release(by: Departure, held: number): Promise<void> {
    const one = this.#one;
    const { by: wake } = this.kind.wake;
    const released = this.release(by, held, one);
    if (!one.line.first) one.stop();
    // RACE: a command sent now would take the lock for a process that has ended.
    else if (isEnding) one.retry();
    // With messages, the message of our own release wakes us together with the others. The queue is
    // joined after the release.
    else if (wake === "time") one.backOffAfterRelease(clocks.mono.now() - this.hold.ownedAt);
    else if (wake === "message" && this.lock.channel.isHeard) one.parkForRelease();
    else one.start();
    return released;
  }

  // ---- it is lost

  override renewed(by: SharedLease, sent: Instant, answer: RenewAnswer): void {
    super.renewed(by, sent, answer);
    if (answer.is === "renewed") this.firstToken = by.token;
  }

  lost(lease: SharedLease, error: LockLostError): void {
    const { context } = this;
    const held = clocks.mono.now() - lease.since;
    context.watchdog.leases.delete(lease);
    if (this.users.delete(lease)) {
      this.leave(lease);
      this.#one.start();
    } else context.leave(this.kind, this.hold);
    tellLost(this.context.events, lease, held, error);
  }

  // ---- messages

  /** Its kinds ask no holder whether it is idle. */
  recalled(): void {}
}

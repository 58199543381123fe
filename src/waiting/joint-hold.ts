import { LEASE_MIN, RENEWALS_PER_LEASE } from "../defaults.ts";
import type { LockLostError, LossReason } from "../errors.ts";
import { type Caller, ofHolder, ofLoss } from "../events.ts";
import type { Hold } from "../lease/hold.ts";
import { unconfirmed } from "../lease/release-outcome.ts";
import { type LeaseOwner, SharedLease, type Turn } from "../lease/shared-lease.ts";
import type { ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import type { Terms } from "../terms.ts";
import { clocks, type Instant, now } from "../util/clock.ts";
import type { Expecting } from "./grant-inbox.ts";
import type { LockKind } from "./lock-kind.ts";
import type { Services } from "./services.ts";

/** The lock queue whose callers share it. */
export interface JointHome {
  readonly kind: LockKind;
  readonly name: string;
  readonly services: Services;
  /** Was it lost before its release? Then its holder is told. */
  lossOf(turn: Turn, held: number, answer: ReleaseAnswer, isBroken: boolean): LockLostError | null;
  /** It was lost. */
  toldLost(turn: Turn, held: number, error: LockLostError): void;
  /** It ends. */
  ends(joint: JointHold): void;
}

/**
 * One hold that several callers of this process have at a time: its users, each with a lease of its own. Protects users from each
 * other: a lease ends by itself, the hold when nobody has any use for it, and with the hold all of them.
 */
export abstract class JointHold implements LeaseOwner, Expecting {
  readonly hold: Hold;
  readonly users = new Set<SharedLease>();
  protected home: JointHome;
  protected isOver = false;
  /** Has it ever had two users at a time? */
  protected isShared = false;

  constructor(home: JointHome, hold: Hold) {
    this.home = home;
    this.hold = hold;
  }

  /** Somebody is inside again, or will be. */
  protected abstract stays(): void;
  /** Has nobody any use for it? */
  protected abstract get isIdle(): boolean;
  /** Its last handle was unlocked. */
  abstract vacated(lease: SharedLease): Promise<void>;

  get kind(): LockKind {
    return this.home.kind;
  }

  get services(): Services {
    return this.home.services;
  }

  // ---- its users come and go

  /** A caller comes in. `caller`: its call. */
  enter(terms: Terms, caller: Caller): SharedLease {
    const lease = new SharedLease(this.hold, terms, this, caller);
    this.users.add(lease);
    if (this.users.size > 1) this.isShared = true;
    this.stays();
    this.services.watchdog.watch(lease);
    return lease;
  }

  /** Returns for how many ms it was held. */
  protected leaves(lease: SharedLease): number {
    this.services.watchdog.leases.delete(lease);
    this.users.delete(lease);
    return clocks.mono.now() - lease.since;
  }

  protected tellRelease(lease: SharedLease, held: number): void {
    const { events } = this.services;
    if (events.isUsed && !lease.isTaken && events.hears("release"))
      events.tell("release", { ...ofHolder(lease), heldFor: held });
  }

  /** Its user wants to know that it was held so far, and others stay. */
  protected async confirm(lease: SharedLease, held: number): Promise<void> {
    const { hold, kind, services } = this;
    const sent = now();
    const { commands } = services;
    hold.asks(LEASE_MIN, sent.mono);
    try {
      const { id, label, name, record } = hold;
      const [answer] = await kind.renew(
        [{ id, label, name, ttl: LEASE_MIN, record, told: null }],
        commands.replyTimeout,
      );
      if (!answer || answer.is === "renewed") return;
      // RACE: first: a listener that is told of the loss may call, and would come into a hold that is gone.
      this.renewed(hold, sent, answer);
      const loss = this.home.lossOf(lease, held, { is: answer.is, clock: 0 }, false);
      if (loss) throw loss;
    } catch (error) {
      throw lease.loss ?? unconfirmed(hold, error, kind);
    } finally {
      lease.settle();
    }
  }

  // ---- it is renewed, or lost

  renewed(hold: Hold, sent: Instant, answer: RenewAnswer): void {
    if (this.isOver) return;
    if (answer.is !== "renewed") this.lose(answer.is);
    else if (hold.renewed(sent, answer)) {
      // For all users that it suffices.
      for (const user of this.users) {
        const { lease } = user.terms;
        if (user.due < Number.POSITIVE_INFINITY && answer.ttl >= lease)
          user.due = Math.max(user.due, sent.mono + lease / RENEWALS_PER_LEASE);
      }
    }
  }

  /** It is nobody's any more: neither its users', nor a caller's that comes in. */
  lose(reason: LossReason, by: string | null = null): void {
    for (const user of [...this.users]) user.lose(reason, by);
    if (this.isIdle) this.leave();
  }

  /** A user's time is over, or that of the hold. */
  lost(lease: SharedLease, error: LockLostError): void {
    const { events } = this.services;
    const held = this.leaves(lease);
    if (events.hears("lost") && this.isOwn(lease)) events.tell("lost", ofLoss(lease, held, error));
    if (this.isIdle) this.leave();
  }

  /** Is this lease a call's own, and no part of another one's? */
  protected isOwn(_lease: SharedLease): boolean {
    return true;
  }

  /** RACE: late commands of it may be on their way, and one that queued it may be executed again: it is left, not released. */
  protected leave(): void {
    this.stays();
    this.end();
    this.services.leave(this.kind, this.hold);
  }

  protected end(): void {
    this.isOver = true;
    this.services.inbox.forget(this.hold);
    this.home.ends(this);
  }

  wanted(lease: SharedLease): AbortSignal {
    return this.services.wanted.signalOf(lease, this.kind);
  }

  // ---- messages

  /** A late one, of what an answer has told already. */
  granted(id: string): boolean {
    return id === this.hold.id;
  }

  revoked(_id: string, by: string | null): void {
    this.hold.isRevoked = true;
    this.lose("revoked", by);
  }

  /** Nobody is told that others wait for what is shared. */
  recalled(_id: string, _nonce: string | null, _isQuestion: boolean): void {}
}

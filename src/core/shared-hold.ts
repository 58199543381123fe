import { type LockError, LockLostError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { failing } from "../api/stacks.ts";
import type { LossReason } from "../api/wording.ts";
import { LEASE_MIN, RENEWALS_PER_LEASE } from "../defaults.ts";
import type { ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import { clocks, type Instant, now } from "../util/clock.ts";
import { Ending } from "./ending.ts";
import type { Applicant } from "./fits.ts";
import type { Hold } from "./lease/hold.ts";
import { unconfirmed } from "./lease/release-outcome.ts";
import { type Departure, type LeaseOwner, SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import type { LockKind } from "./lock-kind.ts";
import type { Expecting, Port } from "./port.ts";
import { lossOf, tellLost } from "./telling.ts";

/**
 * A hold that owns its lock, with any number of users in this process at a time: which callers are
 * inside, and what each of them learns about its end. Protects callers from a hold that is over or
 * force-released, and others from one that stays after its last user.
 */
export abstract class SharedHold implements LeaseOwner, Expecting {
  readonly kind: LockKind;
  readonly context: Port;
  readonly hold: Hold;
  readonly users = new Set<SharedLease>();
  /** Its last command is on its way. */
  isOver = false;
  /** Was it lost before it ended here? */
  isLost = false;
  /** Have two users been inside at a time? */
  protected isShared = false;
  readonly ending: Ending;

  constructor(kind: LockKind, context: Port, hold: Hold, ending = new Ending()) {
    this.ending = ending;
    this.kind = kind;
    this.context = context;
    this.hold = hold;
  }

  /** A caller enters without joining the line and without a command. Null: it has to wait. */
  abstract takeIn(comer: Applicant, caller: Caller): SharedLease | null;
  /** The line has its first caller. */
  abstract lineFormed(): void;
  abstract vacated(lease: SharedLease): Promise<void>;
  abstract lost(lease: SharedLease, error: LockLostError): void;
  abstract recalled(nonce: string | null, isQuestion: boolean): void;

  // ---- its users come and go

  protected enter(terms: Terms, caller: Caller): SharedLease {
    const lease = new SharedLease(this.hold, terms, this, caller);
    this.users.add(lease);
    if (this.users.size > 1) this.isShared = true;
    this.context.watchdog.watch(lease);
    return lease;
  }

  /** Returns how many ms it was inside. */
  protected leaves(lease: SharedLease): number {
    const { watchdog, wanted } = this.context;
    watchdog.leases.delete(lease);
    this.users.delete(lease);
    if (wanted.leases.size > 0) wanted.ended(lease.hold);
    return clocks.mono.now() - lease.since;
  }

  /** A user leaves that wants confirmation that it was held until now, while others stay. */
  protected async confirm(lease: SharedLease, held: number): Promise<void> {
    const { hold, kind, context } = this;
    const sent = now();
    hold.asks(LEASE_MIN, sent.mono);
    let failure: LockError | null = null;
    try {
      const renewal = { hold, ttl: LEASE_MIN, flag: null };
      const [answer] = await kind.renew([renewal], context.commands.replyTimeout);
      if (!answer || answer.is === "renewed") return;
      this.renewed(lease, sent, answer);
      failure = await this.foundNone(lease, held, { is: answer.is });
    } catch (error) {
      failure = lease.loss ?? unconfirmed(hold, error, kind);
    } finally {
      lease.settle();
    }
    if (failure) throw failure;
  }

  wanted(lease: SharedLease): AbortSignal {
    return this.context.wanted.signalOf(lease, this.kind);
  }

  renewed(_: SharedLease, sent: Instant, answer: RenewAnswer): void {
    if (this.isOver) return;
    if (answer.is !== "renewed") this.lose(answer.is);
    else if (this.applyRenewal(sent, answer)) {
      // Postpones the renewal of all users for which this one suffices.
      for (const user of this.users) {
        const { lease } = user.terms;
        if (user.due < Number.POSITIVE_INFINITY && answer.ttl >= lease)
          user.due = Math.max(user.due, sent.mono + lease / RENEWALS_PER_LEASE);
      }
    }
  }

  /** Applies a renewal's answer. False: it does not count. */
  protected applyRenewal(sent: Instant, answer: RenewAnswer): boolean {
    const { hold } = this;
    const isOurs = answer.is === "renewed" && hold.renewed(sent, answer);
    return isOurs && hold.left() > 0 && !hold.isRevoked;
  }

  // ---- it ends

  /** `by`: its last user; null: no event reports a loss. */
  protected end(_by: Departure | null): void {
    this.isOver = true;
    this.context.inbox.forget(this.hold);
  }

  /**
   * RACE: late commands of it may be on their way, and the one that queued it may run again: so it
   * is withdrawn, not released.
   */
  leave(): void {
    const { kind, context, hold, isOver, isLost } = this;
    if (!isOver) this.end(null);
    if (isOver || isLost) context.leave(kind, hold);
    else {
      this.ending.sent();
      const { epoch } = context.commands;
      context.leave({ withdraw: () => this.#withdraw(epoch) }, hold);
    }
  }

  /** Users may have left whose commands are under way: the first answer is theirs too. */
  async #withdraw(epoch: number): Promise<void> {
    const { kind, hold, ending, context } = this;
    try {
      // Kinds with several users answer as to a release.
      const { is } = (await kind.withdraw(hold)) as ReleaseAnswer;
      // RACE: its first copy may have been executed before the connection broke.
      const isKnown = is === "released" || context.commands.epoch === epoch;
      ending.answered({ answer: isKnown ? { is } : null });
    } catch (error) {
      // It may have been executed, so what later tries find proves nothing.
      ending.answered({ answer: null, error });
      throw error;
    }
  }

  /**
   * A command of a user that has left found no hold. Resolves with what its call rejects with: its
   * loss, or that its release is not confirmed; null: it has lost nothing. RACE: see `Ending`.
   */
  async foundNone(by: Departure, held: number, answer: ReleaseAnswer): Promise<LockError | null> {
    const ended = await this.ending.outcome();
    if (ended === null) return lossOf(this, by, held, answer, false);
    if (ended.answer) return lossOf(this, by, held, ended.answer, ended.isBroken === true);
    return unconfirmed(this.hold, ended.error, this.kind);
  }

  // ---- it is lost

  lose(reason: LossReason, by: string | null = null): void {
    if (!this.isOver) this.isLost = true;
    // RACE: the listeners of one user's loss would find the others still inside.
    this.context.events.step(() => {
      for (const user of [...this.users]) user.lose(reason, by);
    });
  }

  /**
   * It was lost, and a user has just left whose command was not sent yet. RACE: nothing has confirmed
   * that it was held until then, so that user has lost it like the others; unless the hold is over by
   * its own time.
   */
  protected lostBy({ lease, held, resolve }: Leaver, reason: LossReason, by: string | null): void {
    const isNews = this.hold.left() > 0;
    const loss = isNews ? new LockLostError(lease.name, reason, undefined, undefined, by, lease.noun) : null;
    if (loss) {
      lease.lostAtRelease(loss);
      tellLost(this.context.events, lease, held, loss);
    }
    lease.settle();
    resolve(loss ? failing(loss) : undefined);
  }

  // ---- messages

  /** A message that another caller waits may have been missed. */
  mayBeWanted(_at: number): void {}

  /** A late message that repeats an answer. */
  granted(): void {}

  revoked(by: string | null): void {
    this.hold.isRevoked = true;
    this.lose("revoked", by);
  }
}

/** A user that has left, and whose command waits for the end of a turn of the event loop. */
export interface Leaver {
  readonly lease: SharedLease;
  readonly held: number;
  resolve(released?: Promise<void>): void;
}

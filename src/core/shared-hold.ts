import { type LockError, LockLostError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { failing } from "../api/stacks.ts";
import { type LossReason, nounOf } from "../api/wording.ts";
import { LEASE_MIN, RENEWALS_PER_LEASE } from "../defaults.ts";
import { RELEASED, type ReleaseAnswer, type RenewAnswer } from "../redis/replies.ts";
import { clocks, type Instant } from "../util/clock.ts";
import { type Ended, Ending } from "./ending.ts";
import { atTurnEnd } from "./event-loop-turn.ts";
import type { Applicant } from "./fits.ts";
import type { Hold } from "./lease/hold.ts";
import { unconfirmed } from "./lease/release-outcome.ts";
import { type Departure, type LeaseOwner, SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import type { Line } from "./line.ts";
import type { Callback, LockKind } from "./lock-kind.ts";
import type { Expecting, Port } from "./port.ts";
import { lossOf, tellAcquired, tellLost } from "./telling.ts";
import type { Waiter } from "./waiter.ts";

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
  /** Was it lost before it ended here? */
  isLost = false;
  /** Have two users been inside at a time? */
  protected isShared = false;
  /** How many units Redis should have for it, by the last command sent. */
  protected units = 1;
  /** Users that have left, and await an answer about it. */
  protected readonly leavers: Leaver[] = [];
  readonly ending: Ending;
  protected readonly home: SharedHoldHome;

  constructor(kind: LockKind, home: SharedHoldHome, hold: Hold, ending = new Ending()) {
    this.kind = kind;
    this.context = home.port;
    this.hold = hold;
    this.ending = ending;
    this.home = home;
  }

  /** Its last command is on its way. */
  get isOver(): boolean {
    return this.units === 0;
  }

  /** A caller enters without joining the line and without a command. Null: it has to wait. */
  abstract takeIn(comer: Applicant, caller: Caller): SharedLease | null;
  /** One more user, by a local hand-off or by Redis's answer. */
  protected abstract take(terms: Terms, caller: Caller, isPass: boolean): SharedLease;
  /** Those that have left await the answer to the command that this sends. */
  protected abstract giveBack(): void;
  abstract vacated(lease: SharedLease): Promise<void>;
  abstract lost(lease: SharedLease, error: LockLostError): void;

  // ---- its users come and go

  protected admit(line: Line, caller: Waiter, isPass = false): void {
    line.remove(caller);
    const lease = this.take(caller.terms, caller, isPass);
    caller.give(lease);
    const { events } = this.context;
    if (events.isUsed) tellAcquired(events, lease, lease.since - caller.since, isPass, false);
  }

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

  /** Has it no user? */
  protected get isUnused(): boolean {
    return this.users.size === 0 && !this.isOver;
  }

  /** This user has left, and awaits an answer. */
  protected answerTo(lease: SharedLease, held: number, isNow: boolean): Promise<void> {
    return new Promise((resolve) => {
      this.leavers.push({ lease, held, resolve });
      if (isNow) this.giveBack();
      // Those that came in together leave in one turn of the event loop, and come back in the same turn.
      else atTurnEnd(this.#turned);
    });
  }

  readonly #turned = (): void => {
    if (this.leavers.length > 0) this.giveBack();
  };

  /** Those that have left need no answer. */
  protected settle(): void {
    for (const { lease, resolve } of this.leavers.splice(0)) {
      lease.settle();
      resolve();
    }
  }

  /** A user leaves that wants confirmation that it was held until now, while others stay. */
  protected async confirm(lease: SharedLease, held: number): Promise<void> {
    let failure: LockError | null = null;
    try {
      const { is } = await lease.renew(LEASE_MIN, this.context.commands.replyTimeout);
      if (is === "renewed") return;
      failure = await this.foundNone(lease, held, { answer: { is } });
    } catch (error) {
      failure = lease.loss ?? unconfirmed(this.hold, error, this.kind);
    } finally {
      lease.settle();
    }
    if (failure) throw failure;
  }

  renewed(_: SharedLease, sent: Instant, answer: RenewAnswer): void {
    if (this.isOver) return;
    if (answer.is !== "renewed") {
      this.lose(answer.is);
      return;
    }
    if (!this.hold.renewed(sent, answer)) return;
    // Postpones the renewal of all users for which this one suffices.
    for (const user of this.users) {
      const { lease } = user.terms;
      if (user.due < Number.POSITIVE_INFINITY && answer.ttl >= lease)
        user.due = Math.max(user.due, sent.mono + lease / RENEWALS_PER_LEASE);
    }
  }

  // ---- it ends

  protected end(): void {
    this.units = 0;
    this.context.inbox.forget(this.hold);
    this.home.ended(this);
  }

  /** Leaves it this many units; 0: it ends. `kind`: of those that have left. */
  protected shrink(units: number, kind = this.kind): void {
    kind.shrink?.(this.hold, units, this.startShrink(units, kind));
  }

  /** The same, where the command is sent together with others. */
  protected startShrink(units: number, kind = this.kind): Callback<ReleaseAnswer> {
    const { hold, context, ending } = this;
    const { commands, cleanup } = context;
    const { epoch } = commands;
    const leavers = this.leavers.splice(0);
    this.units = units;
    if (units === 0) {
      this.end();
      ending.sent();
    }
    cleanup.releases++;
    const done = (failures: readonly (LockError | null)[] = []): void => {
      cleanup.releases--;
      if (leavers.length > 1) this.home.gather();
      for (const [i, { lease, resolve }] of leavers.entries()) {
        const failure = failures[i];
        lease.settle();
        resolve(failure ? failing(failure) : undefined);
      }
      if (cleanup.isEnding) cleanup.look();
    };
    return {
      answered: (answer) => {
        const isBroken = commands.epoch !== epoch;
        if (units === 0) ending.answered({ answer, isBroken });
        if (answer.is === "released") done();
        else if (units === 0) {
          const by = { kind, context };
          context.events.step(() =>
            done(leavers.map(({ lease, held }) => lossOf(by, lease, held, answer, isBroken))),
          );
        } else {
          if (!this.isOver) this.lose("gone");
          // Without the server's time: it was no copy of this command that ended the hold.
          const none = { answer: { is: answer.is }, isBroken };
          const found = leavers.map(({ lease, held }) => this.foundNone(lease, held, none, kind));
          void Promise.all(found).then(done);
        }
      },
      failed: (error) => {
        if (units === 0) {
          ending.answered({ answer: null, error });
          context.leave(kind, hold);
        } else this.#shrinkAgain(kind);
        done(leavers.map(() => unconfirmed(hold, error, kind)));
      },
    };
  }

  /**
   * A shrink was not answered: until Redis has processed one, others wait for those units, at most
   * for as long as the hold lives. RACE: more units may be freed meanwhile. A hold only shrinks, so
   * commands with the units of their time may arrive in any order. RACE: the command that ends the
   * hold may be under way, and sent again after this one: it would find no hold, and report a loss.
   */
  #shrinkAgain(kind: LockKind): void {
    const { hold, context } = this;
    const withdraw = (): Promise<ReleaseAnswer> =>
      new Promise((answered, failed) => {
        if (this.isOver) answered(RELEASED);
        else kind.shrink?.(hold, this.units, { answered, failed });
      });
    context.cleanup.add({ withdraw }, hold, hold.mayLive);
  }

  /**
   * RACE: late commands of it may be on their way, and the one that queued it may run again: so it
   * is withdrawn, not released.
   */
  leave(): void {
    const { kind, context, hold, isLost } = this;
    this.end();
    if (isLost) context.leave(kind, hold);
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
  protected async foundNone(
    by: Departure,
    held: number,
    found: Ended,
    kind = this.kind,
  ): Promise<LockError | null> {
    const { context, hold } = this;
    const { answer, isBroken = false, error } = (await this.ending.outcome()) ?? found;
    if (!answer) return unconfirmed(hold, error, kind);
    return lossOf({ kind, context }, by, held, answer, isBroken);
  }

  // ---- it is lost

  lose(reason: LossReason, by: string | null = null): void {
    if (!this.isOver) this.isLost = true;
    const leavers = this.leavers.splice(0);
    // RACE: the listeners of one user's loss would find the others still inside.
    this.context.events.step(() => {
      for (const user of [...this.users]) user.lose(reason, by);
    });
    if (this.isUnused) this.leave();
    for (const leaver of leavers) this.#lostBy(leaver, reason, by);
  }

  /**
   * It was lost, and a user has just left whose command was not sent yet. RACE: nothing has confirmed
   * that it was held until then, so that user has lost it like the others; unless the hold is over by
   * its own time.
   */
  #lostBy({ lease, held, resolve }: Leaver, reason: LossReason, by: string | null): void {
    const isNews = this.hold.left() > 0;
    const noun = nounOf(this.kind);
    const loss = isNews ? new LockLostError(lease.name, reason, undefined, undefined, by, noun) : null;
    if (loss) {
      lease.lostAtRelease(loss);
      tellLost(this.context.events, lease, held, loss);
    }
    lease.settle();
    resolve(loss ? failing(loss) : undefined);
  }

  // ---- messages

  /** The line has its first caller. */
  lineFormed(): void {}

  recalled(_nonce: string | null, _isQuestion: boolean): void {}

  /** A message that another caller waits may have been missed. */
  mayBeWanted(_at: number): void {}

  /** A late message that repeats an answer. */
  granted(): void {}

  revoked(by: string | null): void {
    this.hold.isRevoked = true;
    this.lose("revoked", by);
  }
}

/** A user that has left, and awaits the answer to a command that was sent, or will be in this turn. */
export interface Leaver {
  readonly lease: Departure;
  readonly held: number;
  resolve(released?: Promise<void>): void;
}

/** What it needs of its resource. */
export interface SharedHoldHome {
  readonly port: Port;
  ended(hold: SharedHold): void;
  /** Several callers that leave get their answers together, and may come back together. */
  gather(): void;
}

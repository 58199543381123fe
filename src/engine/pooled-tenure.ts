import type { LockError, LockLostError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { failing } from "../api/stacks.ts";
import type { LossReason } from "../api/wording.ts";
import { atTurnEnd } from "../core/event-loop-turn.ts";
import type { Applicant } from "../core/fits.ts";
import type { Run } from "../core/lock-kind.ts";
import { now } from "../util/clock.ts";
import { isEnding } from "../util/process-end.ts";
import type { Acquisition } from "./acquisition.ts";
import type { Hold } from "./lease/hold.ts";
import { DONE, unconfirmed } from "./lease/release-outcome.ts";
import type { Departure, SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import { type Pool, passes, serves, unitsOf } from "./policies/pooled.ts";
import { type Leaver, shrinkAgain } from "./release-command.ts";
import { Tenure, type TenureHome } from "./tenure.ts";
import type { Waiter } from "./waiter.ts";

/**
 * One hold of permits, for callers of this process: its units, which of them are in use, and where
 * the others go. Protects the other processes from unused units here, and from callers here that
 * hand them on without limit; and everyone from more callers inside than there are units.
 *
 * | units | true in Redis | they leave it by |
 * |---|---|---|
 * | used | the hold has them | its user leaves → the next caller here has them · offered |
 * | offered | the same, for this turn of the event loop | a caller comes → used · turned → given back |
 * | given back | the hold has fewer, as soon as a shrink runs; with none left it has ended | – |
 *
 * Units only shrink, so commands about them may run late, twice and in any order.
 */
export class PooledTenure extends Tenure implements Pool {
  readonly run: Run;
  /** Its unused units. Redis has them too, until a shrink says otherwise. */
  free: number;
  wasUsed = false;
  /** How many units Redis should have for it, by the last command sent. */
  #units: number;
  /** All its users have lost it, or are just losing it. */
  #isLosing = false;
  /** Callers that have left, and whose units no caller has taken yet. */
  #leavers: Leaver[] = [];

  /** Has `units` units, but never more than requested, whatever a message says. */
  constructor(lock: TenureHome, hold: Hold, run: Run, units: number) {
    super(lock, hold);
    this.run = run;
    this.#units = Math.min(units, run.upTo);
    this.free = this.#units;
  }

  readonly holder = null;

  get isOpen(): boolean {
    return this.free > 0;
  }

  // ---- callers come

  override found(one: Acquisition, isDirect: boolean): void {
    const { first } = one.line;
    if (!first || unitsOf(first.terms) <= this.free) super.found(one, isDirect);
    else {
      // The caller that it was asked for has gone. Callers after the first do not enter before it.
      this.leave();
      one.start();
    }
  }

  /**
   * Serves this caller, and those after it, in order, as far as the units go. The remaining units
   * go back.
   */
  protected give(one: Acquisition, waiter: Waiter): void {
    this.#admit(one, waiter, false);
    for (let { first } = one.line; first && this.#serves(first.terms); { first } = one.line)
      this.#admit(one, first, false);
    this.#giveBack();
    one.start();
  }

  #admit(one: Acquisition, waiter: Waiter, isPass: boolean): void {
    this.admit(one, waiter, this.#take(waiter.terms, waiter, isPass), isPass);
  }

  #take(terms: Terms, caller: Caller, isPass: boolean): SharedLease {
    if (this.wasUsed) this.hold.passes++;
    this.wasUsed = true;
    if (isPass) this.hold.turns++;
    this.free -= unitsOf(terms);
    const lease = this.enter(terms, caller);
    // No offered unit is left: the callers that have left need no command.
    if (this.free === 0) this.#settle();
    return lease;
  }

  get #isOurs(): boolean {
    return !this.isOver && !this.#isLosing;
  }

  #serves(terms: Terms): boolean {
    const { mono, wall } = now();
    return this.#isOurs && serves(this, terms, this.context.window, mono, wall);
  }

  #passes(comer: Applicant): boolean {
    // RACE: the process is ending: the next caller here would get them and never know.
    if (isEnding || !this.#isOurs) return false;
    const { mono, wall } = now();
    return passes(this, comer, this.context.window, mono, wall);
  }

  takeIn(comer: Applicant, caller: Caller): SharedLease | null {
    if (!this.#passes(comer)) return null;
    const lease = this.#take(comer.terms, caller, true);
    this.lock.look();
    if (this.context.events.isUsed) this.tellAcquired(lease, now().mono, true, false);
    return lease;
  }

  /** Could units kept for callers of this turn go to the line with the next command? */
  lineFormed(): void {
    this.#giveBack();
  }

  // ---- its users leave

  vacated(lease: SharedLease): Promise<void> {
    const held = this.leaves(lease);
    if (this.context.events.isUsed) this.tellReleased(lease, held);
    this.free += unitsOf(lease.terms);
    if (lease.isConfirmed) return this.#confirmed(lease, held);
    this.#serveLine();
    if (this.free === 0) {
      lease.settle();
      return DONE;
    }
    return new Promise((resolve) => {
      this.#leavers.push({ lease, held, resolve });
      if (!this.isShared) {
        this.#giveBack();
        return;
      }
      // Callers that came in together leave in one turn of the event loop, and come back in the
      // same turn.
      this.lock.look();
      atTurnEnd(this.#turned);
    });
  }

  /**
   * Its user wants confirmation that it was held until now: the release gives it to the last one, a
   * renewal to others.
   */
  #confirmed(lease: SharedLease, held: number): Promise<void> {
    if (this.users.size === 0)
      return new Promise((resolve) => {
        this.#leavers.push({ lease, held, resolve });
        this.#giveBack();
      });
    const confirmed = this.confirm(lease, held);
    this.#serveLine();
    this.#giveBack();
    return confirmed;
  }

  /** Units are free: serves the callers in line, in order, as far as they may have them. */
  #serveLine(): void {
    const one = this.lock.shared;
    if (!one?.line.first) return;
    for (let { first } = one.line; first && this.#passes(first); { first } = one.line)
      this.#admit(one, first, true);
    // A caller that has just left may come back at once, and its process would have given up its
    // place.
    if (!one.line.first) atTurnEnd(() => one.deserted());
    else one.reconsider();
  }

  readonly #turned = (): void => this.#giveBack();

  /** Unused units go back to Redis. */
  #giveBack(): void {
    if (this.isOver || this.free === 0) return;
    const { hold, context } = this;
    const { commands, cleanup } = context;
    const leavers = this.#leavers;
    this.#leavers = [];
    this.#units -= this.free;
    this.free = 0;
    const stays = this.#units;
    const { epoch } = commands;
    if (stays === 0) {
      this.end(null);
      this.ending.sent();
    }
    cleanup.releases++;
    const done = (failures: readonly (LockError | null)[] = []): void => {
      cleanup.releases--;
      if (leavers.length > 1) this.lock.gather();
      for (const [i, { lease, resolve }] of leavers.entries()) {
        const failure = failures[i];
        lease.settle();
        resolve(failure ? failing(failure) : undefined);
      }
      if (cleanup.isEnding) cleanup.look();
    };
    this.kind.shrink?.(hold, stays, {
      answered: (answer) => {
        if (stays === 0) this.ending.answered({ answer, isBroken: commands.epoch !== epoch });
        if (answer.is === "released") {
          done();
          return;
        }
        if (!this.isOver) this.lose("gone");
        const found = leavers.map(({ lease, held }) => this.foundNone(lease, held, answer));
        void Promise.all(found).then(done);
      },
      failed: (error) => {
        if (stays === 0) this.ending.answered({ answer: null, error });
        if (this.isOver) context.leave(this.kind, hold);
        else shrinkAgain(this, () => this.#units);
        done(leavers.map(() => unconfirmed(hold, error, this.kind)));
      },
    });
  }

  #settle(): void {
    const leavers = this.#leavers;
    this.#leavers = [];
    for (const { lease, resolve } of leavers) {
      lease.settle();
      resolve();
    }
  }

  protected override end(by: Departure | null): void {
    this.#units = 0;
    this.free = 0;
    super.end(by);
    this.#settle();
  }

  // ---- its users lose it

  override lose(reason: LossReason, by: string | null = null): void {
    this.#isLosing = true;
    const leavers = this.#leavers;
    this.#leavers = [];
    super.lose(reason, by);
    if (this.users.size === 0 && !this.isOver && !this.claiming) this.leave();
    for (const leaver of leavers) this.lostBy(leaver, reason, by);
  }

  lost(lease: SharedLease, error: LockLostError): void {
    this.toldLost(lease, this.leaves(lease), error);
    if (this.users.size === 0 && !this.isOver) this.leave();
    if (this.isOver || this.#isLosing) return;
    // A hold that is over has nothing left for the others.
    if (this.hold.left() <= 0) {
      this.lose(error.reason, error.by);
      return;
    }
    // RACE: the lost caller may still be working. So no local hand-off passes its units on: they go
    // back to Redis in the statement that frees them.
    this.free += unitsOf(lease.terms);
    this.#giveBack();
  }

  /** Shared permits are not recalled. */
  recalled(): void {}
}

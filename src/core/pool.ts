import type { LockLostError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import { now } from "../util/clock.ts";
import { isEnding } from "../util/process-end.ts";
import type { Applicant } from "./fits.ts";
import type { Hold } from "./lease/hold.ts";
import { DONE } from "./lease/release-outcome.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import type { Line } from "./line.ts";
import type { LockKind, Run } from "./lock-kind.ts";
import { passes, serves, unitsOf } from "./permits.ts";
import { SharedHold, type SharedHoldHome } from "./shared-hold.ts";
import { tellAcquired, tellLost, tellReleased } from "./telling.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A hold of permits: its units, which of them are in use, and where the others go. Protects the other
 * processes from unused units here, and from callers here that hand them on without limit; and
 * everyone from more callers inside than there are units.
 *
 * | units | true in Redis | they leave it by |
 * |---|---|---|
 * | used | the hold has them | its user leaves → the next caller here has them · offered |
 * | offered | the same, for this turn of the event loop | a caller comes → used · turned → given back |
 * | given back | the hold has fewer, as soon as a shrink runs; with none left it has ended | – |
 *
 * Units only shrink, so commands about them may run late, twice and in any order.
 */
export class Pool extends SharedHold {
  /** The request that it was made for. */
  readonly run: Run;
  /** Its unused units. Redis has them too, until a shrink says otherwise. */
  free: number;
  wasUsed = false;
  declare protected readonly home: PoolHome;

  /** Has `units` units, but never more than requested, whatever a message says. */
  constructor(home: PoolHome, kind: LockKind, hold: Hold, run: Run, units: number) {
    super(kind, home, hold);
    this.run = run;
    this.free = this.units = Math.min(units, run.upTo);
  }

  // ---- callers come

  /** For this caller it was asked for. Those after it enter as far as the units go. */
  begin(line: Line, first: Waiter): void {
    this.admit(line, first);
    for (let next = line.first; next && this.#serves(next.terms); next = line.first) this.admit(line, next);
    this.giveBack();
  }

  protected take(terms: Terms, caller: Caller, isPass: boolean): SharedLease {
    if (this.wasUsed) this.hold.passes++;
    this.wasUsed = true;
    if (isPass) this.hold.turns++;
    this.free -= unitsOf(terms);
    const lease = this.enter(terms, caller);
    // No offered unit is left: the users that have left need no command.
    if (this.free === 0) this.settle();
    return lease;
  }

  get #isOurs(): boolean {
    return !this.isOver && !this.isLost;
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
    const lease = this.take(comer.terms, caller, true);
    const { events } = this.context;
    if (events.isUsed) tellAcquired(events, lease, 0, true, false);
    return lease;
  }

  /** Could units kept for callers of this turn go to the line with the next command? */
  override lineFormed(): void {
    this.giveBack();
  }

  // ---- its users leave

  vacated(lease: SharedLease): Promise<void> {
    const held = this.leaves(lease);
    const { events } = this.context;
    if (events.isUsed) tellReleased(events, lease, held);
    this.free += unitsOf(lease.terms);
    if (lease.isConfirmed) return this.#confirmed(lease, held);
    this.#serveLine();
    if (this.free === 0) {
      lease.settle();
      return DONE;
    }
    return this.answerTo(lease, held, !this.isShared);
  }

  /**
   * Its user wants confirmation that it was held until now: the release gives it to the last one, a
   * renewal to others.
   */
  #confirmed(lease: SharedLease, held: number): Promise<void> {
    if (this.users.size === 0) return this.answerTo(lease, held, true);
    const confirmed = this.confirm(lease, held);
    this.#serveLine();
    this.giveBack();
    return confirmed;
  }

  /** Units are free: serves the callers in line, in order, as far as they may have them. */
  #serveLine(): void {
    const shared = this.home.shared(this.kind);
    if (!shared?.line.first) return;
    const { line } = shared;
    for (let next = line.first; next && this.#passes(next); next = line.first) this.admit(line, next, true);
    shared.served();
  }

  /** Unused units go back to Redis. */
  protected giveBack(): void {
    const { free } = this;
    if (this.isOver || free === 0) return;
    this.free = 0;
    this.shrink(this.units - free);
  }

  // ---- its users lose it

  lost(lease: SharedLease, error: LockLostError): void {
    tellLost(this.context.events, lease, this.leaves(lease), error);
    // Those that have left in this turn learn from the answer to the command that ends it.
    if (this.isUnused && this.leavers.length === 0) this.leave();
    if (!this.#isOurs) return;
    // A hold that is over has nothing left for the others.
    if (this.hold.left() <= 0) {
      this.lose(error.reason, error.by);
      return;
    }
    // RACE: the lost caller may still be working. So no local hand-off passes its units on: they go
    // back to Redis in the statement that frees them.
    this.free += unitsOf(lease.terms);
    this.giveBack();
  }
}

/** What a pool needs of its resource. */
interface PoolHome extends SharedHoldHome {
  /** The place of all callers of a kind, and that it has lost some of them. Null: there is none. */
  shared(kind: LockKind): { readonly line: Line; served(): void } | null;
}

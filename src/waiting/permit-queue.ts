import { LEASE_TIME } from "../defaults.ts";
import type { Caller } from "../events.ts";
import type { Grant, Hold } from "../lease/hold.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import { setImmediate } from "../util/real-timers.ts";
import { Acquisition } from "./acquisition.ts";
import { JointQueue } from "./joint-queue.ts";
import { PermitHold, type PermitHome, unitsOf } from "./permit-hold.ts";
import { isFor, runOf } from "./permit-run.ts";
import type { Comer } from "./stay-owner.ts";
import type { Waiter } from "./waiter.ts";

/**
 * The callers of this process that want permits of one semaphore. They stand in one line, for which there is one place in the queue
 * of Redis, also while the process has permits; and permits go from one to the next for a while. Protects their order: nobody comes
 * in before a caller that came earlier, whatever that one wants, so a place that brings too little for the first is given up.
 */
export class PermitQueue extends JointQueue<PermitHold> implements PermitHome {
  /** Until the end of this drain of microtasks callers may come that one command can ask for. */
  #isGathering = false;

  protected override get isOpen(): boolean {
    for (const { free } of this.holds) if (free > 0) return true;
    return false;
  }

  // ---- callers come

  /** A caller has what another one has left in this turn of the event loop, without a command. Null: it has to ask, or to wait. */
  override takeAgain({ terms, passes }: Comer, caller: Caller): SharedLease | null {
    const { services } = this;
    if (services.stays.isClosed || services.commands.ended) return null;
    for (const pooled of this.holds)
      if (pooled.passes(terms, passes)) {
        const lease = pooled.admit(terms, caller, true);
        this.toldAcquired(lease, 0, true);
        return lease;
      }
    return null;
  }

  override join(waiter: Waiter): void {
    // From now on callers stand in line, and what was kept for those that come in this turn could be theirs by the next command.
    if (this.isKept) for (const pooled of this.holds) pooled.giveBack();
    this.isKept = false;
    if (this.shared && this.#isGathering && this.shared.state === "idle") {
      this.shared.add(waiter, true);
      return;
    }
    if (this.shared) {
      super.join(waiter);
      // The caller for which its place was taken may have gone just now.
      if (this.shared instanceof PoolingAcquisition) this.shared.reconsider();
      return;
    }
    const one = new PoolingAcquisition(this);
    this.shared = one;
    one.add(waiter, true);
    if (!this.#isGathering) one.start();
  }

  tellsMany(): void {
    this.#isGathering = true;
    process.nextTick(() => {
      this.#isGathering = false;
      if (this.shared?.state === "idle") this.shared.start();
    });
  }

  // ---- a hold

  override found(one: Acquisition, hold: Hold, isDirect: boolean, grant?: Grant): void {
    const pooled = pooledOf(hold);
    if (grant) pooled.given(grant.units ?? pooled.asked.units);
    const head = one.first;
    if (head && unitsOf(head.terms) > pooled.free) {
      // It was asked for by one that has gone. Those behind the first do not come in before it.
      this.services.leave(this.kind, hold);
      one.start();
    } else super.found(one, hold, isDirect);
  }

  /** To this caller, and to those behind it, in order, as far as it goes. The rest goes back. */
  protected override give(one: Acquisition, hold: Hold, waiter: Waiter): void {
    const pooled = pooledOf(hold);
    this.begins(one, pooled);
    this.#admit(one, pooled, waiter, false);
    while (one.first && pooled.serves(one.first.terms)) this.#admit(one, pooled, one.first, false);
    pooled.giveBack();
    one.start();
  }

  freed(pooled: PermitHold): void {
    const one = this.shared;
    if (!one?.first) return;
    while (one.first && pooled.passes(one.first.terms, one.first.passes))
      this.#admit(one, pooled, one.first, true);
    // One that has just left may come back at once, and its process would have given up its place.
    if (!one.first) setImmediate(() => one.deserted());
    else if (one instanceof PoolingAcquisition) one.reconsider();
  }

  #admit(one: Acquisition, pooled: PermitHold, waiter: Waiter, isPass: boolean): void {
    this.admitted(one, waiter, pooled.admit(waiter.terms, waiter, isPass), isPass);
  }

  isOffered(): void {
    this.look();
  }
}

/** Asks for the first of those that stand in line, and up to what all want that one hold may serve. */
class PoolingAcquisition extends Acquisition {
  protected override ask(...[hold, mode, head, yielded]: Parameters<Acquisition["ask"]>): void {
    hold.record ??= new PermitHold(this.queue as PermitQueue, hold, runOf(head, this.services.window));
    super.ask(hold, mode, head, yielded);
  }

  protected override held(...told: Parameters<Acquisition["held"]>): void {
    super.held(...told);
    this.reconsider();
  }

  override deserted(): void {
    super.deserted();
    this.reconsider();
  }

  /**
   * Another caller is first. RACE: its place asks for what the former one wanted, and never changes. With more than the present one
   * wants it could be waited for without end; with less it would be given up when it comes. So a new place is taken, behind all others:
   * once for each caller at the most, because the first one stays first until it has what it wants, or leaves.
   */
  reconsider(): void {
    const { first, hold, state } = this;
    if (state !== "parked" || !hold || !first || isFor(pooledOf(hold).asked, first)) return;
    hold.asks(LEASE_TIME);
    this.services.leave(this.kind, hold);
    this.start();
  }
}

function pooledOf({ record }: Hold): PermitHold {
  if (record instanceof PermitHold) return record;
  throw new TypeError("permits that are not pooled");
}

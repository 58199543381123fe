import { ofHolder } from "../events.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import { clocks } from "../util/clock.ts";
import type { Acquisition } from "./acquisition.ts";
import type { JointHold } from "./joint-hold.ts";
import { LockQueue } from "./lock-queue.ts";
import type { Waiter } from "./waiter.ts";

/**
 * The callers of this process at a lock of which it may have several holds, each for several callers, while others still stand in
 * line. Protects the queue from being given up while one of its holds is alive.
 */
export abstract class JointQueue<Joint extends JointHold> extends LockQueue {
  protected readonly holds = new Set<Joint>();

  /** May a caller come into one of the holds, where nobody stands in line? */
  protected abstract readonly isOpen: boolean;

  override get isUnderWay(): boolean {
    return this.holds.size > 0 || super.isUnderWay;
  }

  /** What was asked for has come. */
  protected begins(one: Acquisition, joint: Joint): void {
    one.outrun = null;
    this.holds.add(joint);
    this.services.inbox.expected.set(joint.hold.id, joint);
  }

  /** A caller of the line comes in. */
  protected admitted(one: Acquisition, waiter: Waiter, lease: SharedLease, passed: boolean): void {
    one.remove(waiter);
    waiter.give(lease);
    this.toldAcquired(lease, clocks.mono.now() - waiter.since, passed);
  }

  /** `kept`: nobody was inside, and nobody was asked. */
  protected toldAcquired(lease: SharedLease, waited: number, passed: boolean, kept = false): void {
    const { events } = this.services;
    if (events.isUsed && events.hears("acquire"))
      events.tell("acquire", { ...ofHolder(lease), waitedFor: waited, passed, kept });
  }

  /** Also one that was never more than a part of another's time. */
  ends(joint: Joint): void {
    this.holds.delete(joint);
    this.look();
    if (this.holds.size === 0 && !this.shared) this.services.left(this);
  }

  override left(one: Acquisition): void {
    if (this.holds.size === 0) super.left(one);
    else if (this.shared === one) {
      this.shared = null;
      this.look();
    }
  }

  /** May a caller come in without standing in line? */
  protected look(): void {
    this.isKept = !this.shared && this.isOpen;
  }
}

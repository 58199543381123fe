import type { LockLostError } from "../errors.ts";
import { ofHolder } from "../events.ts";
import { unconfirmed } from "../lease/release-outcome.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { ReleaseAnswer } from "../redis/replies.ts";
import type { Terms } from "../terms.ts";
import { clocks } from "../util/clock.ts";
import { failing } from "../util/stacks.ts";
import type { Acquisition } from "./acquisition.ts";
import type { LockKind } from "./lock-kind.ts";
import { LockQueue } from "./lock-queue.ts";
import { PermitQueue } from "./permit-queue.ts";
import { RecheckGroup } from "./recheck-group.ts";
import type { Services } from "./services.ts";
import { SharedHold } from "./shared-hold.ts";
import { SharingQueue } from "./sharing-queue.ts";
import type { Waiter } from "./waiter.ts";

/**
 * The writers of this process at one lock that readers share. A scope that writes may read beside that; when its writer leaves
 * first, the hold becomes a reader's. Protects what such a scope has read: no other writer comes in between.
 */
export class ShrinkingQueue extends LockQueue {
  override places: RecheckGroup | null = new RecheckGroup();

  override join(waiter: Waiter): void {
    if (this.services.linger.stats.kept > 0 && this.kind.sharing) {
      const readers = this.services.queueOf(this.kind.sharing.readers, this.name);
      if (readers instanceof SharingQueue) readers.giveWay();
    }
    super.join(waiter);
  }

  /** A reader in the time of a writer, whose lease this is. */
  read(lease: SharedLease, terms: Terms): SharedLease {
    return this.#readers().inside(lease).enter(terms, lease);
  }

  override vacated(one: Acquisition, lease: SharedLease): Promise<void> {
    const shared = inside(lease);
    if (shared && shared.users.size > 0) return this.#shrink(one, lease, shared);
    // Nothing of it is left for the readers' queue, which may have been made for it.
    if (shared) this.#readers().ends(shared);
    return super.vacated(one, lease);
  }

  override lost(one: Acquisition, lease: SharedLease, error: LockLostError): void {
    const shared = inside(lease);
    super.lost(one, lease, error);
    shared?.lose(error.reason, error.by);
  }

  /** Not before the last writer of the scope has left: those that borrow its lock write too. */
  #shrink(one: Acquisition, lease: SharedLease, shared: SharedHold): Promise<void> {
    const { hold } = lease;
    const { services, kind } = this;
    const { watchdog, events, cleanup } = services;
    watchdog.leases.delete(lease);
    one.lease = null;
    const held = clocks.mono.now() - lease.since;
    if (events.isUsed && !lease.isTaken && events.hears("release"))
      events.tell("release", { ...ofHolder(lease), heldFor: held });
    this.#readers().outlives(shared);
    cleanup.releases++;
    const done = (): void => {
      cleanup.releases--;
      lease.settle();
      if (cleanup.isEnding) cleanup.look();
    };
    const shrunk = new Promise<void>((resolve) => {
      kind.sharing?.shrink(hold, {
        answered: (answer) => {
          const outcome = shared.shrunk(lease, held, answer);
          done();
          resolve(outcome);
        },
        failed: (error) => {
          // Until then all others wait: for as long as the hold lives, and no longer.
          cleanup.add({ withdraw: () => this.#shrinkAgain(lease) }, hold, hold.mayLive);
          done();
          resolve(failing(unconfirmed(hold, error, kind)));
        },
      });
    });
    // Writers of this process queue behind it.
    one.start();
    return shrunk;
  }

  /** RACE: readers may have left meanwhile, or join: a hold only shrinks, so this may come in any order. */
  #shrinkAgain({ hold }: SharedLease): Promise<ReleaseAnswer> {
    return new Promise((answered, failed) => {
      this.kind.sharing?.shrink(hold, { answered, failed });
    });
  }

  #readers(): SharingQueue {
    const queue = this.services.queueOf(this.kind.sharing?.readers ?? this.kind, this.name, true);
    if (!(queue instanceof SharingQueue)) throw new TypeError("readers that do not share");
    return queue;
  }
}

/** What reads in the time of this writer. */
function inside(lease: SharedLease): SharedHold | null {
  const { record } = lease.hold;
  return record instanceof SharedHold && record.writer === lease ? record : null;
}

/** The callers at a lock that several have at a time. Readers that want their places in order have one each, and share nothing. */
export function newQueue(kind: LockKind, name: string, services: Services): LockQueue {
  if (kind.pooling) return new PermitQueue(kind, name, services);
  if (kind.mode === "write") return new ShrinkingQueue(kind, name, services);
  return kind === kind.sharing?.readers
    ? new SharingQueue(kind, name, services)
    : new LockQueue(kind, name, services);
}

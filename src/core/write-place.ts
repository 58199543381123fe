import type { LockLostError } from "../api/errors.ts";
import { KEEPER_REPLY } from "../defaults.ts";
import type { Attempt } from "./attempt.ts";
import type { Ending } from "./ending.ts";
import type { Hold } from "./lease/hold.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { Terms } from "./lease/terms.ts";
import { type Home, Place } from "./place.ts";
import { Readers, type ReadersHome } from "./readers.ts";
import { IDLE } from "./states.ts";
import { tellReleased } from "./telling.ts";

/**
 * A place of writers. Protects readers from a writer that only asks whether the lock is free, and
 * readers inside a writer's lease that stay longer than the writer.
 */
export class WritePlace extends Place {
  declare readonly resource: WritersHome;
  /** Those inside its hold, or that were. */
  #readers: Readers | null = null;

  /**
   * A readers' hold that is kept here with no reader inside ends before this command.
   *
   * RACE: a writer's place in the queue closes the shared hold to all readers. A writer that does
   * not wait would do so each time that a reader is inside. So it queues only after all readers
   * have answered that they are idle.
   */
  protected override send(attempt: Attempt): void {
    const { kind, name, context } = this;
    if (context.stays.learner.stats.kept > 0) this.resource.giveWay();
    if (attempt.nonce === null || attempt.mode !== "queue" || !kind.sharing) {
      super.send(attempt);
      return;
    }
    context.holderQueries.askHolders(kind.sharing.readers, name, KEEPER_REPLY).then(
      (is) => {
        // If its callers have left meanwhile, no holder needs to release the lock.
        const isFree = this.line.first && (is === "idle" || is === "free");
        if (isFree && this.attempt === attempt) kind.attempt(attempt);
        else attempt.answered({ is: "held", at: 0, ttl: 0, position: null, flag: 0 });
      },
      (error: unknown) => attempt.failed(error),
    );
  }

  // ---- readers inside a writer's lease

  readInside(writer: SharedLease, terms: Terms): SharedLease {
    const { kind, resource } = this;
    if (this.#readers?.writer !== writer) {
      const readers = kind.sharing?.readers ?? kind;
      this.#readers = new Readers(resource, readers, writer.hold, {
        writer,
        ending: this.ending ?? undefined,
      });
    }
    return this.#readers.take(terms, writer);
  }

  /** One that has left while others stay learns by the end of the hold whether it had the lock. */
  protected override get ending(): Ending | null {
    return this.#readers && this.#readers.hold === this.hold ? this.#readers.ending : null;
  }

  protected override withdraw(hold: Hold): void {
    if (this.#readers?.hold === hold) this.#readers.leave();
    else super.withdraw(hold);
  }

  override vacated(lease: SharedLease, mono: number, wall: number): Promise<void> {
    const readers = this.#readers;
    if (readers?.writer === lease && readers.users.size > 0) return this.#shrink(lease, mono, readers);
    return super.vacated(lease, mono, wall);
  }

  /**
   * A writer leaves while readers inside its lease stay: the hold becomes theirs. Only when the
   * last writer of the scope has left: calls that borrow its lock write too.
   */
  #shrink(lease: SharedLease, mono: number, readers: Readers): Promise<void> {
    const { events } = this.context;
    const held = mono - lease.since;
    this.ended(lease);
    if (events.isUsed) tellReleased(events, lease, held);
    const shrunk = readers.outlive(lease, held, this.kind);
    // Writers of this process queue after it.
    this.#readers = null;
    this.to(IDLE);
    this.ask();
    return shrunk;
  }

  override lost(lease: SharedLease, error: LockLostError): void {
    const readers = this.#readers;
    super.lost(lease, error);
    if (readers?.writer === lease) readers.lose(error.reason, error.by);
  }
}

/** What a place of writers needs of its resource. */
interface WritersHome extends Home, ReadersHome {
  /** A writer asks: readers' holds that are kept with no reader inside end at once. */
  giveWay(): void;
}

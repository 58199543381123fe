import { LockLostError, LockUnavailableError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import type { Interval, Turn } from "../api/once.ts";
import { nounOf } from "../api/wording.ts";
import type { Hold } from "../core/lease/hold.ts";
import { type LeaseOwner, SharedLease } from "../core/lease/shared-lease.ts";
import { lossOf, tellAcquired, tellLost, tellReleased } from "../core/telling.ts";
import type { RenewAnswer } from "../redis/replies.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { clocks, type Instant } from "../util/clock.ts";
import type { OnceScripts } from "./once-scripts.ts";
import { TurnHandle } from "./turn.ts";

/** What a run needs of its client. */
type Client = Pick<LockManager, "commands" | "watchdog" | "cleanup" | "events" | "wanted">;

/**
 * A turn that has begun, and its body. The watchdog renews the turn while the body runs, and ends
 * the lease when the turn is lost.
 *
 * | the body | sent to Redis | the turn is free |
 * |---|---|---|
 * | returns | end | at the end of the interval, or at once after that |
 * | throws | `end` if the turn is kept, or over sooner than the lease; otherwise nothing | as above, or when the lease is over |
 * | was lost, its process crashes, its client is closed | nothing | when the lease is over, and, if the turn is kept, the interval too |
 */
export class Run implements LeaseOwner {
  readonly kind: OnceScripts;
  readonly context: Client;
  readonly #interval: Interval;
  readonly #lease: SharedLease;
  readonly #over: () => void;
  #hasThrown = false;

  /**
   * `hold`: it has begun its turn, at the server's time that is its token. `over`: called when
   * nothing of the turn is left here.
   */
  constructor(
    kind: OnceScripts,
    client: Client,
    hold: Hold,
    interval: Interval,
    caller: Caller,
    over: () => void,
  ) {
    this.kind = kind;
    this.context = client;
    this.#interval = interval;
    this.#over = over;
    const terms = { lease: interval.lease, watchdog: true, maxHold: Number.POSITIVE_INFINITY, linger: 0 };
    this.#lease = new SharedLease(hold, terms, this, caller);
    client.watchdog.watch(this.#lease);
  }

  get lease(): SharedLease {
    return this.#lease;
  }

  /**
   * Resolves or rejects as the body does. @throws LockLostError when the turn was lost before the
   * body ended.
   */
  async go<T>(body: (turn: Turn) => T | PromiseLike<T>, waited: number): Promise<T> {
    const lease = this.#lease;
    const { events } = this.context;
    tellAcquired(events, lease, waited, false, false);
    let outcome: { readonly value: T } | { readonly error: unknown };
    try {
      const go = () => body(new TurnHandle(lease));
      outcome = { value: await (events.holds ? events.holds.within(lease, go) : go()) };
    } catch (error) {
      outcome = { error };
      this.#hasThrown = true;
    }
    await lease.leave().catch((failure: unknown) => {
      if (!(failure instanceof LockLostError)) events.report(failure);
    });
    const { loss } = lease;
    if (loss && "error" in outcome) throw outcome.error === loss ? loss : loss.causedBy(outcome.error);
    if (loss) throw loss;
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  /** The body has ended in time. */
  async vacated(lease: SharedLease): Promise<void> {
    const { watchdog, events } = this.context;
    watchdog.leases.delete(lease);
    tellReleased(events, lease, clocks.mono.now() - lease.since);
    // A body that throws at once must not run on one process after another.
    const isLeft = this.#hasThrown && this.#interval.onCrash === "again" && this.#rest > lease.hold.left();
    try {
      if (!isLeft) await this.#end(lease);
    } finally {
      this.#over();
    }
  }

  async #end(lease: SharedLease): Promise<void> {
    const { commands, cleanup } = this.context;
    const { hold } = lease;
    const { epoch } = commands;
    const end = () => this.kind.end(hold, this.#interval, hold.token);
    cleanup.releases++;
    try {
      const answer = await end();
      // A second copy of a command that freed the turn finds nothing.
      const clock = this.#rest <= 0 ? hold.token : 0;
      const held = clocks.mono.now() - lease.since;
      lossOf(this, lease, held, { ...answer, clock }, commands.epoch !== epoch);
    } catch (error) {
      // RACE: without `end`, the turn would be free when the lease is over, and the body would run
      // a second time.
      cleanup.add({ withdraw: end }, hold, hold.mayLive);
      throw new LockUnavailableError(hold.name, UNENDED, error, nounOf(this.kind));
    } finally {
      cleanup.releases--;
      lease.settle();
      if (cleanup.isEnding) cleanup.look();
    }
  }

  /** At least this many ms are left of the interval; negative after its end. */
  get #rest(): number {
    const { every, aligned } = this.#interval;
    const { hold } = this.#lease;
    const begin = hold.token / 1_000;
    const length = aligned ? every - (begin % every) : every;
    return hold.sent.mono + length - clocks.mono.now();
  }

  lost(lease: SharedLease, error: LockLostError): void {
    const { watchdog, events } = this.context;
    watchdog.leases.delete(lease);
    tellLost(events, lease, clocks.mono.now() - lease.since, error);
    this.#over();
  }

  renewed({ hold }: SharedLease, sent: Instant, answer: RenewAnswer): void {
    if (answer.is === "renewed") hold.renewed(sent, answer);
    else this.#lease.lose(answer.is);
  }
}

const UNENDED =
  "the end of this run, which is tried again, was not confirmed, so the next run may begin too early";

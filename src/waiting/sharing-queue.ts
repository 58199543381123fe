import { SHARE_TIME, TURNS_TIME } from "../defaults.ts";
import type { Caller } from "../events.ts";
import type { Hold } from "../lease/hold.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import { clocks, type Instant, now } from "../util/clock.ts";
import { setImmediate } from "../util/real-timers.ts";
import { Acquisition } from "./acquisition.ts";
import { JointQueue } from "./joint-queue.ts";
import { KeptHold, knownReads } from "./kept-hold.ts";
import { RecheckGroup } from "./recheck-group.ts";
import { SharedHold } from "./shared-hold.ts";
import type { Comer } from "./stay-owner.ts";
import type { Waiter } from "./waiter.ts";

/**
 * The readers of this process at one lock. They share holds: what is found serves all that wait, and others come in while it is
 * known that nobody waits, or when Redis says so again. Protects writers, of this process and of others, from readers that would
 * keep them waiting for ever.
 */
export class SharingQueue extends JointQueue<SharedHold> {
  /** With the writers' queue, whose entries of this client stand in the same queue of Redis. */
  override places: RecheckGroup | null = new RecheckGroup();
  /** Since when readers have come in without a turn of the event loop. 0: it has turned. */
  #turn = 0;

  protected override get isOpen(): boolean {
    return this.holds.size > 0;
  }

  // ---- callers come

  /** A caller comes into a hold that is open, without a command. Null: it has to ask, or to wait. */
  override takeAgain({ terms }: Comer, caller: Caller): SharedLease | null {
    const { services } = this;
    const { mono, wall } = now();
    if (services.stays.isClosed || services.commands.ended || this.isTired(mono)) return null;
    // RACE: a writer of this process may not be in the queue of Redis yet, and a question that was sent before it came says that
    // nobody waits: what is known of a hold is not enough.
    if (this.#isWriterWaiting) return null;
    for (const shared of this.holds) {
      if (!shared.isOpenTo(terms, mono, wall)) continue;
      const { isKept } = shared;
      const lease = shared.enter(terms, caller);
      this.toldAcquired(lease, 0, isKept, isKept);
      return lease;
    }
    return null;
  }

  override join(waiter: Waiter): void {
    // From now on callers stand in line.
    this.isKept = false;
    if (this.shared) {
      super.join(waiter);
      return;
    }
    const one = new SharingAcquisition(this);
    this.shared = one;
    one.add(waiter, true);
    one.start();
  }

  /** A hold into which this caller may come once Redis was asked. Null: it needs one of its own. */
  joinable({ terms }: Waiter): SharedHold | null {
    // Nobody comes in before that writer: the answer would be of no use.
    if (this.holds.size === 0 || this.#isWriterWaiting) return null;
    const { mono, wall } = now();
    for (const shared of this.holds)
      if (shared.admission.isJoinable && shared.suits(terms, mono, wall) !== "no") return shared;
    return null;
  }

  /** Readers have come in for so long that others of this process must have their turn of the event loop. */
  isTired(mono: number): boolean {
    if (this.#turn === 0) {
      this.#turn = mono;
      setImmediate(() => {
        this.#turn = 0;
      });
    }
    return mono - this.#turn > TURNS_TIME;
  }

  // ---- a hold

  override found(one: Acquisition, hold: Hold, isDirect: boolean): void {
    // Others keep as many as may be kept: so long it need not be asked for like one that may stay.
    if (isDirect && hold.lingers && hold.told !== 2)
      this.services.linger.ended(knownReads(this.name), "not kept", 0, clocks.mono.now());
    // Now: a claim says nothing of waiters, and would make it look younger.
    hold.record ??= new (hold.told === 2 ? KeptHold : SharedHold)(
      this,
      hold,
      hold.wantedAt === null ? hold.seen : null,
    );
    super.found(one, hold, isDirect);
  }

  /** To this caller, and to all behind it that the hold serves. The others go on with a hold of their own. */
  protected override give(one: Acquisition, hold: Hold, waiter: Waiter): void {
    const shared = hold.record;
    if (!(shared instanceof SharedHold)) throw new TypeError("a hold that readers do not share");
    this.begins(one, shared);
    this.#admit(one, shared, waiter);
    this.serve(one, shared, Number.POSITIVE_INFINITY);
    one.start();
  }

  /**
   * Lets those in that the hold suits, up to the first writer of this process, and up to the first that has come later than `by`.
   */
  serve(one: Acquisition, shared: SharedHold, by: number): void {
    const { mono, wall } = now();
    const until = Math.min(by, this.#firstWriter());
    // A listener may call or abort while it is told.
    for (const waiter of [...one]) {
      if (waiter.since > until) break;
      if (waiter.listed && waiter.group === one && shared.suits(waiter.terms, mono, wall) === "enough")
        this.#admit(one, shared, waiter);
    }
  }

  #admit(one: Acquisition, shared: SharedHold, waiter: Waiter): void {
    this.admitted(one, waiter, shared.enter(waiter.terms, waiter), false);
  }

  /** Readers in a writer's time. */
  inside(lease: SharedLease): SharedHold {
    const { hold } = lease;
    const { record } = hold;
    if (record instanceof SharedHold && record.writer === lease) return record;
    const shared = new SharedHold(this, hold, null, lease);
    hold.record = shared;
    return shared;
  }

  /** Their writer has left. */
  outlives(shared: SharedHold): void {
    this.holds.add(shared);
    shared.outlives(this);
    this.look();
  }

  /** Since when the first writer of this process waits. */
  #firstWriter(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const kind of this.kind.sharing?.writers ?? [])
      for (const { wait, since } of this.services.queueOf(kind, this.name) ?? [])
        if (wait > 0 && since < first) first = since;
    return first;
  }

  get #isWriterWaiting(): boolean {
    for (const kind of this.kind.sharing?.writers ?? [])
      for (const { wait } of this.services.queueOf(kind, this.name) ?? []) if (wait > 0) return true;
    return false;
  }

  /** RACE: behind a connection that was lost there may be a server that has forgotten the holds, and a writer there. */
  override mayBeWanted(): void {
    const at = clocks.mono.now();
    for (const { admission, hold } of this.holds) {
      admission.asksAgain();
      // A recall may have been lost: it is not kept.
      hold.want(at);
    }
    const { hold = null } = this.shared ?? {};
    if (hold?.lingers) hold.want(at);
  }

  // ---- what may stay with nobody inside

  /** RACE: it is read while the hold is claimed for its first reader: it counts for all that will share it. */
  override recalled(one: Acquisition, nonce: string | null, isQuestion: boolean): void {
    const { hold } = one;
    if (hold?.record instanceof SharedHold) hold.record.recalled(hold.id, nonce, isQuestion);
    else super.recalled(one, nonce, isQuestion);
  }

  protected override get mayEverStay(): boolean {
    return !this.#isWriterWaiting;
  }

  protected override isWorthKeeping(): boolean {
    return this.services.linger.keeps(knownReads(this.name), clocks.mono.now());
  }

  /** A writer of this process comes: what nobody uses ends before its command. */
  giveWay(): void {
    for (const shared of [...this.holds]) shared.giveWay();
  }
}

/** Asks for the readers of one process: whether they may come into a hold that the process has, or for a new one. */
class SharingAcquisition extends Acquisition {
  readonly #readers: SharingQueue;

  constructor(readers: SharingQueue) {
    super(readers);
    this.#readers = readers;
  }

  override start(): void {
    const { first } = this;
    const shared = first && this.#readers.joinable(first);
    if (!shared) {
      super.start();
      return;
    }
    const { mono, wall } = now();
    this.to("asking");
    if (shared.isOpenTo(first.terms, mono, wall)) shared.rest((sent) => this.#rested(shared, first, sent));
    else this.#join(shared, first);
  }

  #join(shared: SharedHold, first: Waiter): void {
    const { health } = this.queue;
    health.askedAt ||= clocks.mono.now();
    shared.join(first.terms, (sent, error) => {
      if (error === undefined) health.answered();
      else health.failed(error);
      this.#asked(shared, first, sent);
    });
  }

  /** RACE: the event loop may have stood still instead of turning: what was known when the caller came is too old by now. */
  #rested(shared: SharedHold, first: Waiter, sent: Instant): void {
    const { mono, wall } = now();
    const { admission } = shared;
    if (admission.isJoinable && !admission.isOpen(mono, wall)) this.#join(shared, first);
    else this.#asked(shared, first, sent);
  }

  /** Redis was asked for this caller, and for all that have come until then, or soon after. */
  #asked(shared: SharedHold, head: Waiter, sent: Instant): void {
    if (shared.admission.isJoinable) this.#readers.serve(this, shared, sent.mono + SHARE_TIME);
    const { first } = this;
    if (!first) this.stop();
    // What this answer has not brought, another one would not bring either.
    else if (first === head || first.since <= sent.mono) super.start();
    else this.start();
  }
}

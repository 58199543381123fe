import type { Hold } from "../lease/hold.ts";
import type { Ask, LockKind } from "./lock-kind.ts";
import type { LockManager } from "./lock-manager.ts";
import type { LockQueue } from "./lock-queue.ts";
import type { RecheckGroup } from "./recheck-group.ts";
import { RedisHealth } from "./redis-health.ts";
import { patience } from "./schedule.ts";
import type { Waiter } from "./waiter.ts";
import { Waiters } from "./waiters.ts";

/** What the two halves of a turn share: the lock, its callers, what is known of Redis, and the way to hear of it. */
export class Place {
  readonly kind: LockKind;
  readonly name: string;
  readonly room: LockManager;
  readonly line: Waiters;
  readonly health: RedisHealth;
  /** The other places of this client at this lock, where every caller has one of his own. */
  readonly siblings: RecheckGroup | null;
  readonly #turn: LockQueue;
  #unlisten: (() => void) | null = null;

  constructor(kind: LockKind, name: string, room: LockManager, turn: LockQueue) {
    this.kind = kind;
    this.name = name;
    this.room = room;
    this.line = new Waiters(name, room);
    this.siblings = room.siblings(kind, name);
    this.health = this.siblings?.health ?? new RedisHealth();
    this.#turn = turn;
  }

  /** A hold that no command has named before (R1), and whose messages are expected from now on. */
  newHold(): Hold {
    const hold = this.room.newHold(this.kind, this.name);
    this.room.mailbox.expect(hold, this.#turn);
    return hold;
  }

  /** The hold is over: a grant that still comes for it is nobody's. */
  forget(hold: Hold): void {
    this.room.mailbox.forget(hold);
  }

  /** The hold is over, and whatever it is in Redis must go. */
  withdraw(hold: Hold): void {
    this.room.mailbox.forget(hold);
    this.room.withdraw(this.kind, hold);
  }

  /** The same for what nobody here has any more. */
  withdrawIfOver(hold: Hold): void {
    if (!this.room.mailbox.isExpected(hold)) this.withdraw(hold);
  }

  /**
   * How the command that is sent next asks with this hold, for this caller. `position`: where it stands in the queue, if it
   * does. Who queues unheard says so: no number of receivers proves anything of him.
   */
  ask(hold: Hold, mode: Ask["mode"], head: Waiter, position: number | null = 0): Ask {
    hold.asks(head.terms.lease);
    // A hold can be asked for by one caller after the other. Its tokens are reserved by the command that wins it, and nobody
    // knows which that was: what all of them reserve there is for certain.
    hold.mayPass = Math.min(hold.mayPass, head.passes);
    return {
      mode,
      lease: head.terms.lease,
      passes: hold.mayPass,
      patience: patience(position),
      after: (mode !== "again" && head.link?.before?.hold) || null,
      channel: this.kind.queues ? this.room.hearing.told(this.channel, mode === "queue") : null,
    };
  }

  /** Has this client other places at this lock: is it unlikely to be free? After a failure nothing is taken for granted. */
  get isCrowded(): boolean {
    return this.siblings !== null && this.siblings.members > 1 && this.health.failures === 0;
  }

  /** Is every message about this lock heard from now on? Where there are none, none is missed. */
  get isSubscribed(): boolean {
    if (this.kind.pause) return true;
    return (
      (this.kind.queues || this.#unlisten !== null) && this.room.hearing.subscriptions.isReady(this.channel)
    );
  }

  /** May it queue? RACE 2: only when grants are heard. Who cannot subscribe has to find his, or he would have no turn at all. */
  get mayQueue(): boolean {
    return this.kind.queues && (this.isSubscribed || this.room.hearing.isUnheard(this.channel));
  }

  /** Resolves when the release channel is acknowledged. */
  listen(): Promise<void> {
    const { hearing } = this.room;
    if (this.kind.queues) hearing.listen(this.channel);
    else
      this.#unlisten ??= hearing.subscriptions.listen(this.channel, (word) => this.#turn.search.woken(word));
    return hearing.ready(this.channel);
  }

  /** The same for who will wait, and does not yet. */
  listenAhead(): void {
    if (!this.isSubscribed) this.listen().catch(() => {});
  }

  unlisten(): void {
    this.#unlisten?.();
    this.#unlisten = null;
  }

  /** Where this lock's messages are heard. */
  get channel(): string {
    return this.kind.channel(this.name) ?? this.room.hearing.grantChannel(this.name);
  }
}

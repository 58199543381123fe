import { Alarm } from "../alarms.ts";
import { RECHECKS } from "../defaults.ts";
import { type LockLostError, LockUnavailableError } from "../errors.ts";
import { now } from "../lease/clock.ts";
import type { Hold } from "../lease/hold.ts";
import { type Landlord, Tenure } from "../lease/tenure.ts";
import type { AttemptAnswer, YieldAnswer } from "../scripts/answers.ts";
import { lossAtRelease, unconfirmed } from "./ending.ts";
import { Health } from "./health.ts";
import type { Ask, LockKind } from "./kind.ts";
import { Line } from "./line.ts";
import type { Room } from "./room.ts";
import { backOff, handOver, isEnough, patience, sleep } from "./rules.ts";
import type { Waiter } from "./waiter.ts";

type State =
  | { readonly at: "idle" | "subscribing" | "retrying" }
  | { readonly at: "asking" | "claiming" | "yielding"; readonly hold: Hold }
  | { readonly at: "parked"; readonly hold: Hold | null; isChecking: boolean; position: number | null }
  | { readonly at: "holding"; readonly hold: Hold; readonly tenure: Tenure };

const MOVES: Record<State["at"], readonly State["at"][]> = {
  idle: ["idle", "asking"],
  asking: ["idle", "asking", "subscribing", "parked", "claiming", "holding", "retrying"],
  subscribing: ["idle", "asking"],
  parked: ["idle", "asking", "claiming", "holding"],
  claiming: ["idle", "asking", "claiming", "holding", "retrying"],
  holding: ["idle", "asking", "parked", "claiming", "holding", "yielding"],
  yielding: ["idle", "asking", "parked", "claiming", "holding", "retrying"],
  retrying: ["idle", "asking"],
};

/** When a TTL was set, how long it is, and the token that came with it: from a reply or from a grant message. */
interface Grant {
  readonly at: number;
  readonly ttl: number;
  readonly token: number;
}

/**
 * The turn of this process at one lock: its callers in order, and the one hold by which Redis knows them.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | idle | nothing of ours | a caller → asking |
 * | asking | unknown: an acquire is on its way | owner or a grant → holding · held → parked, or subscribing first · failed → retrying |
 * | subscribing | nothing of ours | acknowledged → asking, now with a place in the queue |
 * | parked | our hold is queued; without a queue, nothing | a grant → holding · a wake-up → asking · a re-check: owner → holding, gone → asking |
 * | claiming | we own it for the grant window | renewed → holding · gone, taken → asking · failed → retrying |
 * | holding | we own it | unlock: pass → holding or claiming, yield → yielding, release → idle · lost → asking |
 * | yielding | the old hold is ours until the script ran, then the new one is queued or the owner | as asking |
 * | retrying | nothing known to be ours | its alarm, or a new caller → asking |
 *
 * When the last caller leaves, parked, subscribing and retrying go to idle; the others wait for their answer and give
 * back what it brings. Every answer is compared with the state and the hold that it was asked for: what comes for a
 * hold that is not current any more changes nothing here and is taken back in Redis (R3).
 */
export class Turn implements Landlord {
  readonly kind: LockKind;
  readonly name: string;
  readonly #room: Room;
  readonly #line: Line;
  readonly #health = new Health();
  readonly #alarm = new Alarm(() => this.#rang());
  #state: State = { at: "idle" };
  /** How many wake-ups came. */
  #wakes = 0;
  #unlisten: (() => void) | null = null;

  constructor(kind: LockKind, name: string, room: Room) {
    this.kind = kind;
    this.name = name;
    this.#room = room;
    this.#line = new Line(name, room);
  }

  /** The hold that waits in the queue, if one does. */
  get queued(): Hold | null {
    return this.#state.at === "parked" ? this.#state.hold : null;
  }

  // ---- callers come and go

  join(waiter: Waiter): void {
    const { at } = this.#state;
    const asks = at === "idle" || at === "asking" || at === "retrying";
    // Somebody of this process waits or holds: no command is needed to know that the lock is not free.
    if (!asks && waiter.wait === 0) {
      waiter.give(null);
      return;
    }
    this.#line.add(waiter, asks);
    if (at === "idle" || at === "retrying") this.#ask();
    else if (at === "holding") this.#prepareToWait();
  }

  /** Its signal aborted, or its client closes: it gets its answer at once. */
  leave(waiter: Waiter, reason: unknown): void {
    this.#line.refuse(waiter, reason);
    this.#deserted();
  }

  leaveAll(reason: () => unknown): void {
    this.#line.refuseAll(reason);
    this.#deserted();
  }

  /** A caller's time is up: of its wait, or of its first command. */
  late(waiter: Waiter): void {
    if (waiter.answerBy !== Number.POSITIVE_INFINITY || this.#health.isDoubtful) {
      this.leave(
        waiter,
        new LockUnavailableError(
          this.name,
          "Redis did not answer while this call waited",
          this.#health.failure,
        ),
      );
    } else {
      this.#line.give(waiter, null);
      this.#deserted();
    }
  }

  #deserted(): void {
    if (this.#line.first) return;
    const { at } = this.#state;
    if (at === "parked" && this.#state.hold) this.#withdraw(this.#state.hold);
    if (at === "parked" || at === "subscribing" || at === "retrying") this.#rest();
  }

  // ---- ask

  #ask(): void {
    const head = this.#line.first;
    if (!head) {
      this.#rest();
      return;
    }
    const hold = this.#room.newHold(this.name);
    const isQueueing = this.kind.queues && this.#line.isPatient && this.#isSubscribed();
    const wakes = this.#wakes;
    this.#to({ at: "asking", hold });
    this.#health.sending();
    this.kind.attempt(hold, this.#terms(isQueueing ? "queue" : "try", head)).then(
      (answer) => this.#asked(hold, wakes, answer),
      (error: unknown) => this.#askFailed(hold, head.terms.lease, error),
    );
  }

  #asked(hold: Hold, wakes: number, answer: AttemptAnswer): void {
    this.#health.answered();
    // RACE 4: granted by message before this reply was read. The grant counts, and the hold has its own end.
    if (!this.#is("asking", hold)) return;
    hold.validity.answered(hold.sent, answer.at);
    if (answer.is === "owner") this.#own(hold, answer, true);
    else if (answer.is === "held") this.#busy(hold, answer.ttl, answer.position, wakes);
    // Stale: older than its notAfter when Redis ran it. The server's clock is known now.
    else this.#ask();
  }

  #busy(hold: Hold, ttl: number, position: number | null, wakes: number): void {
    this.#line.tellBusy();
    if (!this.#line.first) {
      if (position !== null) this.#withdraw(hold);
      this.#rest();
    } else if (position !== null) this.#park(hold, ttl, position, false);
    else if (!this.#isSubscribed()) void this.#subscribe();
    // RACE 1, a lost wake-up: (1) our try runs, the lock is held; (2) it is released and the message is read; (3) the
    // answer "held" is read; (4) we sleep. A message since the sending of the try leads to another try instead.
    else if (this.kind.queues || wakes !== this.#wakes) this.#ask();
    else this.#park(null, ttl, null, false);
  }

  #askFailed(hold: Hold, lease: number, error: unknown): void {
    this.#health.failed(error);
    // Granted by message: the reply is not needed.
    if (this.#isCurrent(hold) && this.#state.at !== "asking") return;
    this.#withdraw(hold, lease);
    if (!this.#is("asking", hold)) return;
    this.#line.refuseAll(
      () => new LockUnavailableError(this.name, "the command failed", error),
      "unanswered",
    );
    this.#retry();
  }

  /** RACE 2: register, then check, then sleep. The attempt that finds the lock held is sent after the acknowledgement. */
  async #subscribe(): Promise<void> {
    this.#to({ at: "subscribing" });
    try {
      await this.#listen();
      if (this.#state.at === "subscribing") this.#ask();
    } catch (error) {
      if (this.#state.at !== "subscribing") return;
      this.leaveAll(
        () => new LockUnavailableError(this.name, "its release channel cannot be subscribed", error),
      );
    }
  }

  #retry(): void {
    if (!this.#line.first) {
      this.#rest();
      return;
    }
    this.#to({ at: "retrying" });
    this.#room.alarms.set(this.#alarm, performance.now() + backOff(this.#health.failures));
  }

  // ---- parked

  #park(hold: Hold | null, ttl: number, position: number | null, isKnown: boolean): void {
    this.#to({ at: "parked", hold, isChecking: false, position });
    this.#room.parked(this);
    this.postpone(sleep(ttl, position, isKnown));
  }

  /** Sleeps for so long before it looks again. */
  postpone(delay: number): void {
    if (this.#state.at === "parked") this.#room.alarms.set(this.#alarm, performance.now() + delay);
  }

  /** The first place of this client: looks again soon, whatever it planned. */
  hasten(): void {
    const soon = RECHECKS[0].period;
    if (this.#alarm.index < 0 || this.#alarm.at > performance.now() + soon)
      this.postpone(sleep(soon, 0, true));
  }

  /** A message of a kind without queue: it may be free. */
  woken(): void {
    this.#wakes++;
    if (this.#state.at === "parked" && !this.#state.hold) this.#ask();
  }

  /** Looks again: when its alarm rings, and when a message may have been missed in a reconnect. */
  recheck(): void {
    const state = this.#state;
    const head = this.#line.first;
    if (state.at !== "parked" || !head) return;
    const { hold } = state;
    if (!hold) {
      this.#ask();
      return;
    }
    if (state.isChecking) return;
    state.isChecking = true;
    this.#room.warnSelfWait(this, head);
    const sent = now();
    const siblings = this.#room.siblings(this);
    const others = siblings.flatMap((turn) => turn.queued?.id ?? []);
    this.#health.sending();
    this.kind.attempt(hold, { ...this.#terms("again", head, state.position), others }).then(
      (answer) => {
        this.#health.answered();
        state.isChecking = false;
        // Granted by message, or left, meanwhile: the hold's own end takes care of it.
        if (this.#state !== state) return;
        if (answer.is === "owner") {
          // Ours, and no message was read; "owner by this call" needed none.
          if (answer.already) void this.#room.subscriber.selfTest();
          hold.validity.answered(sent, answer.at);
          this.#own(hold, answer, true);
        } else if (answer.is === "held") {
          hold.validity.answered(sent, answer.at);
          state.position = answer.position;
          this.postpone(sleep(answer.ttl, answer.position, true));
          for (const [i, turn] of siblings.entries())
            turn.postpone(sleep(answer.ttl, (answer.position ?? 0) + i + 1, true));
        } else if (answer.is === "gone") {
          void this.#room.subscriber.selfTest();
          this.#ask();
        } else this.recheck();
      },
      (error: unknown) => {
        this.#health.failed(error);
        state.isChecking = false;
        if (this.#state === state) this.postpone(backOff(this.#health.failures));
      },
    );
  }

  // ---- granted

  /** A grant message. False: its hold is not current, so it must be left (R3). */
  granted(id: string, grant: Grant): boolean {
    const state = this.#state;
    if (!("hold" in state) || state.hold?.id !== id) return false;
    // RACE 3: a re-check had told it already; its late message changes nothing.
    if (state.at !== "holding" && state.at !== "claiming") this.#own(state.hold, grant, false);
    return true;
  }

  revoked(id: string): void {
    if (this.#state.at === "holding" && this.#state.hold.id === id) this.#state.tenure.lose("revoked");
  }

  #own(hold: Hold, grant: Grant, isDirect: boolean): void {
    hold.validity.granted(grant.at, grant.ttl);
    hold.token = grant.token;
    hold.ttl = Math.max(hold.ttl, grant.ttl);
    hold.ownedAt = performance.now();
    this.#handOut(hold, isDirect);
  }

  /** To the first caller, as it is or after a claim. */
  #handOut(hold: Hold, isDirect: boolean): void {
    const head = this.#line.first;
    const left = hold.validity.left();
    if (!head || left <= 0) {
      // Nobody wants it any more, or the message was read so late that somebody else may have it.
      this.#withdraw(hold);
      this.#ask();
    } else if (isDirect ? hold.ttl >= head.terms.lease : isEnough(left, head.terms, this.#room.window))
      this.#give(hold, head);
    else void this.#claim(hold, head);
  }

  /** Raises a granted lock to its full lease before the caller gets it. He was granted in time, so his wait is over. */
  async #claim(hold: Hold, waiter: Waiter): Promise<void> {
    this.#to({ at: "claiming", hold });
    this.#line.remove(waiter);
    const sent = now();
    const claim = { name: this.name, id: hold.id, ttl: waiter.terms.lease };
    this.#health.sending();
    try {
      const [answer] = await this.kind.renew([claim], this.#room.window / 3);
      this.#health.answered();
      if (!this.#is("claiming", hold)) return;
      if (answer?.is === "renewed") {
        hold.validity.renewed(sent, answer.ttl);
        hold.ttl = Math.max(hold.ttl, answer.ttl);
        if (waiter.settled) this.#handOut(hold, false);
        else this.#give(hold, waiter);
        return;
      }
      this.#putBack(waiter);
      this.#ask();
    } catch (error) {
      this.#health.failed(error);
      this.#withdraw(hold, waiter.terms.lease);
      if (!this.#is("claiming", hold)) return;
      this.#putBack(waiter);
      this.#retry();
    }
  }

  /** The claim brought nothing: first in line again, if his time is not over. */
  #putBack(waiter: Waiter): void {
    if (waiter.settled) return;
    this.#line.putBack(waiter);
    if (performance.now() >= waiter.deadline) this.late(waiter);
  }

  #give(hold: Hold, waiter: Waiter): void {
    const tenure = new Tenure(hold, waiter.terms, this);
    this.#to({ at: "holding", hold, tenure });
    this.#room.watchdog.watch(tenure, this.kind);
    this.#line.give(waiter, tenure);
    this.#line.tellBusy();
    if (this.#line.first) this.#prepareToWait();
    this.#room.events.tell("acquire", () => ({
      name: this.name,
      token: tenure.token,
      waited: performance.now() - waiter.since,
    }));
  }

  // ---- let go

  async vacated(tenure: Tenure): Promise<void> {
    const { hold } = tenure;
    this.#room.watchdog.unwatch(tenure);
    this.#room.events.tell("release", () => ({
      name: this.name,
      token: tenure.token,
      held: performance.now() - tenure.since.mono,
    }));
    const next = this.#line.first;
    const how = next && handOver(hold, next.terms, this.kind.localPasses, this.#room.window);
    if (next && how !== "yield") {
      hold.passes++;
      if (how === "pass") this.#give(hold, next);
      else void this.#claim(hold, next);
    } else if (next && this.kind.yield && this.#isSubscribed())
      await this.#yield(hold, next, this.kind.yield);
    else await this.#release(hold);
  }

  async #release(hold: Hold): Promise<void> {
    const { epoch } = this.#room.commands;
    const answer = this.kind.release(hold);
    // With wake-ups, our own message wakes us together with everybody else. A queue is joined behind the release.
    if (this.#line.first && !this.kind.queues && this.#isSubscribed())
      this.#park(null, RECHECKS[0].period, null, true);
    else this.#ask();
    let loss: LockLostError | null;
    try {
      loss = lossAtRelease(hold, await answer, this.#room.commands.epoch !== epoch);
    } catch (error) {
      this.#withdraw(hold);
      throw unconfirmed(hold, error);
    }
    if (loss) this.#throwLoss(hold, loss);
  }

  async #yield(old: Hold, next: Waiter, send: NonNullable<LockKind["yield"]>): Promise<void> {
    const hold = this.#room.newHold(this.name);
    const { epoch } = this.#room.commands;
    this.#to({ at: "yielding", hold });
    this.#health.sending();
    let answer: YieldAnswer;
    try {
      answer = await send(old, hold, this.#terms("queue", next));
    } catch (error) {
      this.#health.failed(error);
      this.#withdraw(old);
      if (!this.#isCurrent(hold) || this.#state.at === "yielding") this.#withdraw(hold, next.terms.lease);
      if (this.#is("yielding", hold)) this.#retry();
      throw unconfirmed(old, error);
    }
    this.#health.answered();
    const isWaiting = this.#is("yielding", hold);
    if (answer.is === "owner" || answer.is === "held") {
      if (!isWaiting) return; // RACE 4, as above
      hold.validity.answered(hold.sent, answer.at);
      if (answer.is === "owner") this.#own(hold, answer, true);
      else this.#busy(hold, answer.ttl, answer.position, this.#wakes);
      return;
    }
    if (isWaiting) this.#ask();
    const loss = lossAtRelease(old, answer, this.#room.commands.epoch !== epoch);
    if (loss) this.#throwLoss(old, loss);
  }

  #throwLoss(hold: Hold, error: LockLostError): never {
    this.#room.events.tell("lost", () => ({ name: this.name, token: hold.token, error }));
    throw error;
  }

  lost(tenure: Tenure, error: LockLostError): void {
    this.#room.watchdog.unwatch(tenure);
    this.#withdraw(tenure.hold, tenure.terms.lease);
    if (this.#is("holding", tenure.hold)) this.#ask();
    this.#room.events.tell("lost", () => ({ name: this.name, token: tenure.token, error }));
  }

  // ---- small parts

  #to(state: State): void {
    const old = this.#state;
    if (!MOVES[old.at].includes(state.at))
      throw new Error(`lock turn: illegal move from ${old.at} to ${state.at}`);
    this.#state = state;
    this.#room.alarms.clear(this.#alarm);
    if (old.at === "parked") this.#room.unparked(this);
    const before = "hold" in old ? old.hold : null;
    const after = "hold" in state ? state.hold : null;
    if (before && before !== after) this.#room.forget(before);
    if (after && before !== after) this.#room.expect(after, this);
  }

  #is(at: State["at"], hold: Hold): boolean {
    return this.#state.at === at && this.#isCurrent(hold);
  }

  #isCurrent(hold: Hold): boolean {
    return "hold" in this.#state && this.#state.hold === hold;
  }

  /** Nobody is here any more. */
  #rest(): void {
    this.#to({ at: "idle" });
    this.#unlisten?.();
    this.#unlisten = null;
    this.#room.left(this);
  }

  #rang(): void {
    if (this.#state.at === "parked") this.recheck();
    else if (this.#state.at === "retrying") this.#ask();
    else if (this.#state.at === "holding" && this.#line.first)
      this.#room.warnSelfWait(this, this.#line.first);
  }

  /** Somebody waits for a lock that this process holds: be ready to queue when it is let go. */
  #prepareToWait(): void {
    if (!this.#isSubscribed()) this.#listen().catch(() => {});
    const head = this.#line.first;
    if (!head || this.#state.at !== "holding" || this.#alarm.index >= 0) return;
    const since = Math.max(head.since, this.#state.tenure.since.mono);
    this.#room.alarms.set(this.#alarm, since + head.terms.lease);
  }

  #withdraw(hold: Hold, lease = 0): void {
    this.#room.withdraw(this.kind, hold, Math.max(lease, hold.ttl));
  }

  #channel(): string {
    return this.kind.channel(this.name) ?? this.#room.subscriber.channel;
  }

  #listen(): Promise<void> {
    const channel = this.#channel();
    if (!this.kind.queues) this.#unlisten ??= this.#room.subscriber.listen(channel, () => this.woken());
    return this.#room.subscriber.ready(channel);
  }

  #isSubscribed(): boolean {
    return (this.kind.queues || this.#unlisten !== null) && this.#room.subscriber.isReady(this.#channel());
  }

  #terms(mode: Ask["mode"], head: Waiter, position: number | null = 0): Ask {
    return {
      mode,
      lease: head.terms.lease,
      patience: patience(position),
      others: [],
      channel: this.#room.grantChannel(),
    };
  }
}

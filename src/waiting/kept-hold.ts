import { LockLostError, type LossReason } from "../errors.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { ReleaseAnswer } from "../redis/replies.ts";
import { together } from "../redis/writes.ts";
import type { Terms } from "../terms.ts";
import { clocks } from "../util/clock.ts";
import { ASKED, type KeptEnd, TAKEN } from "./linger-policy.ts";
import { SharedHold } from "./shared-hold.ts";
import { Stay, type StayHome, ttlOf } from "./stay.ts";
import { toldRecall } from "./stay-keeper.ts";

/**
 * A hold that readers of this process share, and that may stay with it when the last of them has left: then it is idle, and the
 * next one comes in without a command. Protects writers from a hold that nobody uses: it lives for the window at the most, and
 * no reader comes in without asking behind the first word of a writer, nor for longer than a moment behind the last word of Redis.
 */
export class KeptHold extends SharedHold implements StayHome {
  readonly #stay = new Stay(this, this, this.hold);

  /** By what the policy knows it. A lock of the same name is another one. */
  get #known(): string {
    return knownReads(this.hold.name);
  }

  // ---- the place of its stay

  get stay(): Stay | null {
    return this.isOver ? null : this.#stay;
  }

  rested(): void {}

  stayRenewed(): void {}

  // ---- callers come

  override get isKept(): boolean {
    return this.#stay.state === "idle";
  }

  override isOpenTo(terms: Terms, mono: number, wall: number): boolean {
    // By another object of the same lock, which does without lingering.
    return !(this.isKept && terms.linger === 0) && super.isOpenTo(terms, mono, wall);
  }

  /** What a join asks for: what may stay is asked for the window only. */
  protected override leaseFor(terms: Terms): number {
    return ttlOf(terms, this.services.stays.window);
  }

  protected override stays(): void {
    super.stays();
    if (!this.isKept) return;
    const { stats } = this.services.linger;
    const stay = this.#stay;
    const { isAsking } = this.admission;
    stay.state = "inside";
    stats.kept--;
    if (!isAsking) stats.takenAgain++;
    stay.uses++;
    stay.saved += isAsking ? ASKED : TAKEN;
  }

  // ---- the last one leaves

  protected override keep({ terms, kind }: SharedLease): boolean {
    const { hold, services } = this;
    const { inbox, linger, stays, commands } = services;
    const stay = this.#stay;
    const isWanted = this.admission.isClosed || hold.wantedAt !== null || hold.isRevoked;
    if (terms.linger === 0 || kind === "multi" || stays.isClosed || isWanted || this.#isWriterHere)
      return false;
    const mono = clocks.mono.now();
    // RACE: a writer that queued behind one that would not wait, and was told "busy", has told nobody so: then Redis must have said
    // of a later moment that nobody waits.
    if (this.admission.asked.mono < stay.triedAt) return false;
    // RACE: a claim or an extension may be on its way, and what it sets counts: if this process died, writers would wait for that.
    const isTooLong = hold.mayLiveUntil > mono + stays.window;
    if (isTooLong || commands.isAway || !inbox.hears(hold.name)) {
      this.#learn(isTooLong ? "not kept" : "given up", mono);
      return false;
    }
    if (!linger.keeps(this.#known, mono, stay.saved)) return false;
    stay.state = "idle";
    stay.since = mono;
    // It is not renewed with nobody inside.
    stay.until = Math.min(mono + terms.linger, hold.endMono);
    linger.stats.kept++;
    stays.keep(stay, false);
    return true;
  }

  /** Is a writer of this process waiting, or asking? Then it would be kept only to be recalled by it. */
  get #isWriterHere(): boolean {
    const { kind, services, hold } = this;
    return (kind.sharing?.writers ?? []).some((writer) => {
      const [first] = services.queueOf(writer, hold.name) ?? [];
      return first !== undefined;
    });
  }

  // ---- it ends

  override lose(reason: LossReason, by: string | null = null): void {
    // Behind its end it has just run out, which is nobody's loss.
    const isNews = !this.isOver && this.users.size === 0 && this.#stay.isKept && this.hold.left() > 0;
    super.lose(reason, by);
    // Nobody is inside: readers that were may have lost it before they left, and were told at their unlock that it was theirs.
    if (isNews) this.home.toldLost(this.#stay, 0, new LockLostError(this.hold.name, reason));
  }

  /**
   * Somebody waits for the lock, and says so. RACE: it is a hint, which may be lost: the answer of every join says the same, and
   * without one no reader comes in for long.
   */
  override recalled(_id: string, nonce: string | null, isQuestion: boolean): void {
    const { hold, isKept, services } = this;
    if (nonce !== null && (isQuestion || !isKept)) {
      // A writer that does not wait wants to know, and no more: it would divide the readers each time.
      if (!isQuestion) this.#stay.triedAt = clocks.mono.now();
      this.kind.sharing?.answer(hold.name, nonce, isKept ? "idle" : "busy");
      return;
    }
    hold.recall(clocks.mono.now());
    this.admission.isClosed = true;
    if (!isKept) return;
    services.stays.recalled(hold.name);
    together(() => this.#giveBack());
    // Last: a listener may call, and would find what is wanted.
    toldRecall(services.events, this.#stay);
  }

  /** A writer of this process comes: it need not wait for a message. */
  override giveWay(): void {
    if (this.isKept) this.#giveBack();
  }

  #giveBack(): void {
    // Nobody waits for what becomes of it; a loss is told by an event.
    this.release(this.#stay, 0).catch(() => {});
  }

  takeLeave(): void {
    this.end();
  }

  leaveAnswered(stay: Stay, answer: ReleaseAnswer | null, isBroken: boolean): void {
    if (answer === null) this.services.leave(this.kind, this.hold);
    else this.home.lossOf(stay, 0, answer, isBroken);
  }

  protected override leave(): void {
    this.#over();
    super.leave();
  }

  protected override end(): void {
    this.#over();
    super.end();
  }

  #over(): void {
    const stay = this.#stay;
    if (stay.state === "ended") return;
    const { linger } = this.services;
    const mono = clocks.mono.now();
    const { isKept } = this;
    stay.state = "ended";
    if (isKept) linger.stats.kept--;
    if (this.hold.recalledAt !== null) this.#learn(isKept ? "recalled" : "wanted", mono);
    else if (stay.isKept) this.#learn(isKept && mono >= stay.until ? "lapsed" : "given up", mono);
  }

  #learn(how: KeptEnd, mono: number): void {
    this.services.linger.ended(this.#known, how, this.#stay.saved, mono, true);
  }
}

/** By what a client remembers whether the reads of a lock were worth keeping. */
export const knownReads = (name: string): string => `rw:${name}`;

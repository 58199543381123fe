import { type Caller, type Events, ofHolder } from "../events.ts";
import type { Hold } from "../lease/hold.ts";
import { SharedLease, type Turn } from "../lease/shared-lease.ts";
import type { ReleaseAnswer } from "../redis/replies.ts";
import { together, writeNow } from "../redis/writes.ts";
import { clocks } from "../util/clock.ts";
import type { Acquisition } from "./acquisition.ts";
import { ASKED, TAKEN } from "./linger-policy.ts";
import { mayBegin, type Stay } from "./stay.ts";
import { type Comer, StayOwner } from "./stay-owner.ts";
import type { Waiter } from "./waiter.ts";

/**
 * A lock that stays with this process when nobody here waits for it: idle for a while, or leaving at the end of this turn of the
 * event loop. Protects the other processes from a lock that nobody uses: whatever may go wrong, it ends within the window.
 */
export abstract class StayKeeper extends StayOwner {
  /** Is a stay idle or leaving? */
  isKept = false;

  /** May a hold for this caller stay with this process when it is unlocked? Then it is acquired for the window only. */
  mayLinger({ terms, kind }: Waiter): boolean {
    const { inbox, stays } = this.services;
    const isTooLong = !terms.watchdog && terms.lease > stays.window;
    if (!this.mayEverStay || kind === "multi" || isTooLong || stays.isClosed) return false;
    // Nobody could ask for it.
    if (!inbox.hears(this.name)) {
      stays.hear(this.name);
      return false;
    }
    return this.isWorthKeeping();
  }

  /** Does Redis tell somebody of those that wait for this kind's holds? */
  protected get mayEverStay(): boolean {
    return this.kind.hasStays;
  }

  protected isWorthKeeping(): boolean {
    const { linger } = this.services;
    return linger.keeps(this.name, clocks.mono.now()) || linger.comesBack(this.name);
  }

  protected override keep(one: Acquisition, { hold, terms, kind, call }: SharedLease): boolean {
    const { inbox, linger, stays, commands } = this.services;
    if (!this.kind.hasStays || kind === "multi" || stays.isClosed || hold.isRevoked) return false;
    const mono = clocks.mono.now();
    // RACE: a claim or an extension may be on its way, and what it sets counts, not what is known: if this process died, others
    // would wait for all of that for a lock that nobody uses.
    const isTooLong = hold.mayLiveUntil > mono + stays.window;
    if (isTooLong || commands.isAway || !inbox.hears(this.name)) {
      if (hold.lingers)
        linger.ended(this.name, isTooLong ? "not kept" : "given up", one.stay?.saved ?? 0, mono);
      return false;
    }
    const stay = this.stayOf(one, hold);
    stay.call = call;
    stay.terms = terms;
    // Whose answer takes a lock says that its process is told of recalls.
    const isGranted = hold.told < 2;
    if (hold.wantedAt === null && linger.keeps(this.name, mono, stay.saved, isGranted)) {
      stay.state = "idle";
      stay.since = mono;
      stay.until = mono + terms.linger;
      linger.stats.kept++;
      // It is told first, where it was granted: nobody could ask for it. RACE: one that queued behind a caller that would not wait
      // has told nobody so: Redis is asked whether somebody waits, unless it has said so of a later moment. A body of any length
      // may come in between: where its lease is its own, nothing is renewed.
      stays.keep(stay, isGranted || hold.seen.mono < stay.triedAt);
    } else {
      if (!this.#mayLeaveLater(one, hold, mono)) return false;
      stay.state = "leaving";
      stays.leave(stay);
    }
    this.isKept = true;
    return true;
  }

  /** May it wait for a caller that takes it right again? As long as a caller that waits might have it. */
  #mayLeaveLater(one: Acquisition, hold: Hold, mono: number): boolean {
    const stay = this.stayOf(one, hold);
    const door = this.doorOf(one, hold, { terms: stay.terms, passes: this.kind.localHandoffs });
    return mayBegin(door, mono, clocks.wall.now()) === "begin" && this.services.linger.comesBack(this.name);
  }

  /** A caller comes to a stay in which nobody is. */
  protected override comes(stay: Stay, asks: boolean): void {
    const { linger } = this.services;
    if (stay.state === "idle") {
      linger.stats.kept--;
      stay.uses++;
      stay.saved += asks ? ASKED : TAKEN;
    } else if (stay.state === "leaving") linger.passedBack(this.name, true);
    stay.state = "inside";
    this.isKept = false;
  }

  /**
   * A caller takes the lock again that this process has kept, without a command and without waiting. Null: it has to wait, for
   * Redis or for others.
   */
  takeAgain(comer: Comer, caller: Caller): SharedLease | null {
    const one = this.shared;
    const stay = one?.stay;
    if (!this.isKept || !one || !stay || one.first) return null;
    const { stays, watchdog, events, linger } = this.services;
    const { hold } = stay;
    const mono = clocks.mono.now();
    if (stays.isTired(mono) || mayBegin(this.doorOf(one, hold, comer), mono, clocks.wall.now()) !== "begin")
      return null;
    if (stay.state === "idle") linger.stats.takenAgain++;
    this.comes(stay, false);
    stays.begins(stay);
    this.enters(stay, caller.call, comer.terms);
    const lease = new SharedLease(hold, comer.terms, one, caller);
    one.lease = lease;
    watchdog.watch(lease);
    if (events.isUsed && events.hears("acquire"))
      events.tell("acquire", {
        ...ofHolder(lease),
        waitedFor: clocks.mono.now() - mono,
        passed: true,
        kept: true,
      });
    return lease;
  }

  /**
   * A recall. RACE: it is read before the answer to the command that took the lock, which says that nobody waits: so it counts
   * for a hold in any state, to the hold's end; also that of a caller that does not wait, behind which others may.
   */
  recalled(one: Acquisition, nonce: string | null, isQuestion: boolean): void {
    const { hold, stay, state } = one;
    const isIdle = stay?.state === "idle";
    if (nonce !== null && (isQuestion || (state === "owned" && !isIdle))) {
      // A caller that does not wait wants to know, and no more: it would end a stay each time.
      if (state === "owned") this.kind.answer?.(this.name, nonce, isIdle ? "idle" : "busy");
      if (hold && !isQuestion) this.stayOf(one, hold).triedAt = clocks.mono.now();
      return;
    }
    if (!hold) return;
    hold.recall(clocks.mono.now());
    this.services.wanted.recalled(hold);
    // Its grant was lost, or is about to be read.
    if (state === "parked") one.lookAgain();
    if (!isIdle) return;
    this.services.stays.recalled(this.name);
    together(() => this.endAlone(one, stay));
    // Last: a listener may call, and would find a lock that is kept, and wanted.
    toldRecall(this.services.events, stay);
  }

  /** A stay in which nobody is ends, and its release is somebody else's to send. */
  override takeLeave(stay: Stay): void {
    this.over(stay, stay);
    this.services.inbox.forget(stay.hold);
    this.shared?.stop();
  }

  override leaveAnswered(stay: Stay, answer: ReleaseAnswer | null, isBroken: boolean): void {
    if (answer === null) this.services.leave(this.kind, stay.hold);
    else this.lossOf(stay, 0, answer, isBroken);
  }

  protected override over(stay: Stay, turn: Turn): void {
    const { linger } = this.services;
    turn.firstToken = stay.firstToken;
    const { state, hold, saved, isKept } = stay;
    this.isKept = false;
    stay.state = "ended";
    if (state === "idle") linger.stats.kept--;
    if (state === "leaving") linger.passedBack(this.name, false);
    if (!isKept) return;
    const mono = clocks.mono.now();
    const isLapsed = state === "idle" && mono >= stay.until;
    // Where messages may have been missed nobody has said that it wants the lock.
    const wanted = stay.since > 0 ? "recalled" : "wanted";
    linger.ended(
      this.name,
      hold.recalledAt !== null ? wanted : isLapsed ? "lapsed" : "given up",
      saved,
      mono,
    );
  }
}

/** Somebody else wants what was kept, and its release was sent. */
export function toldRecall(events: Events, { name, kind, since, uses }: Stay): void {
  if (!events.hears("recall")) return;
  // RACE: a listener that blocks the event loop would hold back the release, which others wait for.
  writeNow();
  events.tell("recall", { name, kind, idle: clocks.mono.now() - since, uses });
}

import { PASS_TIME } from "../defaults.ts";
import type { LossReason } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import { unconfirmed } from "../lease/release-outcome.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { ReleaseAnswer } from "../redis/replies.ts";
import type { Terms } from "../terms.ts";
import { clocks, now } from "../util/clock.ts";
import { isEnding } from "../util/process-end.ts";
import { failing } from "../util/stacks.ts";
import { suits } from "./handover.ts";
import { JointHold, type JointHome } from "./joint-hold.ts";
import type { Run } from "./permit-run.ts";
import { isTooLong } from "./stay.ts";
import { atTurnEnd } from "./turn-end.ts";

/** The lock queue of those that want permits. */
export interface PermitHome extends JointHome {
  /** Units of it are free: to those that stand in line, in order, as far as they may have them. */
  freed(pooled: PermitHold): void;
  /** Until the end of this turn of the event loop a caller that comes may have them. */
  isOffered(): void;
  /** Several callers that have left are told so together, and may come back together. */
  tellsMany(): void;
}

/** A caller that has left, and whose units nobody has taken yet. */
interface Leaver {
  readonly lease: SharedLease;
  readonly held: number;
  resolve(released?: Promise<void>): void;
}

/**
 * One hold of permits, for callers of this process: its units, what of them is in use, and what becomes of the rest. Protects the
 * other processes from units that nobody here uses, and from callers here that pass them on for ever; and all from more callers
 * inside than there are units.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | wanted | as its acquisition says | granted → used; with nobody left that it suits it is left |
 * | used | so many units, or more for as long as a shrink is on its way | a user leaves → the next caller here is inside, in its stead · offered |
 * | offered | the same, some units without a user, for this turn of the event loop | a caller comes → used · turned → used, with fewer units · ended |
 * | ended | a release or leave is on its way | – |
 *
 * Units only shrink, so commands about them may be executed late, twice and in any order.
 */
export class PermitHold extends JointHold {
  /** What it was asked for. */
  readonly asked: Run;
  /** Its units that nobody uses. They are in Redis too, until a shrink says otherwise. */
  free = 0;
  readonly #home: PermitHome;
  /** How many units Redis is to know of it, by the last command that was sent. */
  #units = 0;
  /** Has it had a user? The token of the grant is that one's. */
  #isUsed = false;
  #isLosing = false;
  #leavers: Leaver[] = [];
  #isTurning = false;

  constructor(home: PermitHome, hold: Hold, asked: Run) {
    super(home, hold);
    this.#home = home;
    this.asked = asked;
  }

  /** It has so many units. Not more than were asked for, whatever a message says. */
  given(units: number): void {
    this.#units = Math.min(units, this.asked.upTo);
    this.free = this.#units;
  }

  // ---- callers come

  /** Has it units for these terms, and a lease that suits them? The caller looks at the order. */
  serves(terms: Terms): boolean {
    const { hold } = this;
    const isOurs = !this.isOver && !this.#isLosing && !hold.isRevoked;
    if (!isOurs || unitsOf(terms) > this.free || !this.#hasToken) return false;
    // What was given of 10 must not be used by a caller whose code says that there are 20.
    const of = terms.permits?.of ?? null;
    if (of !== null && of !== this.asked.permits) return false;
    const { mono, wall } = now();
    const left = Math.min(hold.endMono - mono, hold.endWall - wall);
    // RACE: by what was ever asked for it, and not by what is known: if this process died, others would wait for all of that.
    if (left <= 0 || isTooLong(hold, terms, this.services.window, mono)) return false;
    return suits(hold, left, terms, this.services.window, false) === "enough";
  }

  /**
   * The same for units that another caller of this process has left. Others wait for so many passes and so long: by then it is
   * theirs, whatever comes here.
   */
  passes(terms: Terms, most: number): boolean {
    // RACE: the process ends: the next caller here would have them, and would never know.
    if (isEnding) return false;
    const { hold } = this;
    const isInTime = clocks.mono.now() - hold.ownedAt < PASS_TIME;
    return isInTime && hold.turns < Math.min(hold.mayPass, most) && this.serves(terms);
  }

  /** Each user has a token of its own, of those that were reserved with the grant. */
  get #hasToken(): boolean {
    return !this.#isUsed || this.hold.passes < this.asked.callers - 1 + this.hold.mayPass;
  }

  /** A caller comes in that it serves. */
  admit(terms: Terms, caller: Parameters<JointHold["enter"]>[1], isPass: boolean): SharedLease {
    if (this.#isUsed) this.hold.passes++;
    this.#isUsed = true;
    if (isPass) this.hold.turns++;
    this.free -= unitsOf(terms);
    return this.enter(terms, caller);
  }

  /** Nothing is left that was offered: those that have left need no command. */
  protected stays(): void {
    if (this.free === 0) this.#settle();
  }

  // ---- its users leave

  protected get isIdle(): boolean {
    return this.users.size === 0 && !this.isOver;
  }

  vacated(lease: SharedLease): Promise<void> {
    const held = this.leaves(lease);
    this.tellRelease(lease, held);
    this.free += unitsOf(lease.terms);
    if (lease.isConfirmed) return this.#confirmed(lease, held);
    this.#home.freed(this);
    if (this.free === 0) {
      lease.settle();
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      this.#leavers.push({ lease, held, resolve });
      // Callers that came in together leave in one turn of the event loop, and come back in the same one.
      if (this.isShared) this.#offer();
      else this.giveBack();
    });
  }

  /** Its user wants to know that it was held so far: of the last one the release says it, of others a renewal. */
  #confirmed(lease: SharedLease, held: number): Promise<void> {
    if (this.users.size === 0)
      return new Promise((resolve) => {
        this.#leavers.push({ lease, held, resolve });
        this.giveBack();
      });
    const confirmed = this.confirm(lease, held);
    this.#home.freed(this);
    this.giveBack();
    return confirmed;
  }

  #offer(): void {
    this.#home.isOffered();
    if (this.#isTurning) return;
    this.#isTurning = true;
    atTurnEnd(this.#turned);
  }

  readonly #turned = (): void => {
    this.#isTurning = false;
    this.giveBack();
  };

  /** What nobody uses goes back to Redis. */
  giveBack(): void {
    if (this.isOver || this.free === 0) return;
    const { hold, services } = this;
    const { commands, cleanup } = services;
    const leavers = this.#leavers;
    this.#leavers = [];
    this.#units -= this.free;
    this.free = 0;
    const stays = this.#units;
    const { epoch } = commands;
    if (stays === 0) this.end();
    cleanup.releases++;
    const done = (outcome: (leaver: Leaver) => Promise<void> | undefined): void => {
      cleanup.releases--;
      if (leavers.length > 1) this.#home.tellsMany();
      for (const leaver of leavers) {
        const released = outcome(leaver);
        leaver.lease.settle();
        leaver.resolve(released);
      }
      if (cleanup.isEnding) cleanup.look();
    };
    this.kind.pooling?.shrink(hold, stays, {
      answered: (answer) => {
        // RACE: where the hold ended meanwhile, a second copy of this command finds nothing, and nothing was lost.
        const isBroken = commands.epoch !== epoch && this.isOver;
        // RACE: first: a listener that is told of the loss may call, and would get units of a hold that is gone.
        if (answer.is !== "released" && !this.isOver) this.lose("gone");
        done(({ lease, held }) => {
          const loss = this.home.lossOf(lease, held, answer, isBroken);
          return loss ? failing(loss) : undefined;
        });
      },
      failed: (error) => {
        if (this.isOver) services.leave(this.kind, hold);
        // Others wait for these units until Redis has heard of it: for as long as the hold lives, and no longer.
        else cleanup.add({ withdraw: () => this.#shrinkAgain() }, hold, hold.mayLive);
        done(() => failing(unconfirmed(hold, error, this.kind)));
      },
    });
  }

  /** RACE: more may have left meanwhile: a hold only shrinks, so what is true by now may come in any order. */
  #shrinkAgain(): Promise<ReleaseAnswer> {
    return new Promise((answered, failed) => {
      this.kind.pooling?.shrink(this.hold, this.#units, { answered, failed });
    });
  }

  #settle(): void {
    const leavers = this.#leavers;
    this.#leavers = [];
    for (const { lease, resolve } of leavers) {
      lease.settle();
      resolve();
    }
  }

  protected override end(): void {
    this.#units = 0;
    this.free = 0;
    super.end();
    this.#settle();
  }

  // ---- its users lose it

  override lose(reason: LossReason, by: string | null = null): void {
    // RACE: while one of its users is told, and calls, nobody comes in beside the others.
    this.#isLosing = true;
    super.lose(reason, by);
  }

  override lost(...[lease, error]: Parameters<JointHold["lost"]>): void {
    super.lost(lease, error);
    if (this.isOver || this.#isLosing) return;
    // Of a hold that is over nothing is left for the others.
    if (this.hold.left() <= 0) {
      this.lose(error.reason, error.by);
      return;
    }
    // RACE: its caller may still be at work, as that of any lease that was lost. No other one of this process takes its place by a
    // pass: so its units are free only now, behind the listeners that were told, and go back to Redis in the same statement.
    this.free += unitsOf(lease.terms);
    this.giveBack();
  }
}

/** How many permits a caller wants. */
export const unitsOf = ({ permits }: Terms): number => permits?.units ?? 1;

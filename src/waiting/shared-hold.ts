import type { LossReason } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import { DONE } from "../lease/release-outcome.ts";
import type { SharedLease, Turn } from "../lease/shared-lease.ts";
import type { ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import type { Terms } from "../terms.ts";
import { clocks, type Instant, now } from "../util/clock.ts";
import { setImmediate } from "../util/real-timers.ts";
import { failing } from "../util/stacks.ts";
import { Admission } from "./admission.ts";
import { JointHold, type JointHome } from "./joint-hold.ts";
import { Release } from "./lock-owner.ts";
import { atTurnEnd } from "./turn-end.ts";

/** The last user has left, and the hold goes at the end of this turn of the event loop. */
interface Leaving {
  readonly lease: SharedLease;
  readonly held: number;
  resolve(released?: Promise<void>): void;
}

/**
 * One hold that readers of this process share: its users, each with a lease of its own, and which readers may still come in. Protects
 * writers from readers that come in one after the other without Redis seeing any of them, and users from each other: a lease
 * ends by itself, and the hold when it has no user any more.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | inside a writer's time | the hold is the writer's | the writer leaves, users stay → shared, once Redis is asked · none stays → ended |
 * | open | a hold of one unit; nobody waited less than 25 ms ago | its time is over → shared |
 * | shared | a hold of one unit | a join: nobody waits → open · somebody waits, unknown → closed · nobody has it → ended, all users lost |
 * | closed | the same, and somebody waits | the last user leaves → ended |
 * | idle | open or shared, nobody is inside, nothing was sent (`KeptHold`) | a reader → open · a join → shared · recalled, its time over, nothing is heard, the client closes → ended |
 * | ended | a release or leave is on its way | – |
 *
 * The last user of an open hold is followed by a turn of the event loop, in which another one may come. While a join is under way
 * the hold stays, because its answer is about a reader that comes in.
 */
export class SharedHold extends JointHold {
  writer: SharedLease | null;
  /** Its users are part of a writer's call. */
  #isInside: boolean;
  readonly admission: Admission;
  #leaving: Leaving | null = null;

  /** `asked`: when Redis said that nobody waits; null: it did not say so. `writer`: in whose time it is. */
  constructor(home: JointHome, hold: Hold, asked: Instant | null, writer: SharedLease | null = null) {
    super(home, hold);
    this.writer = writer;
    this.#isInside = writer !== null;
    this.admission = new Admission(hold, asked, asked === null && writer === null);
  }

  // ---- callers come

  /** Does it suit a caller? "short": when its end is raised, by a join. "no": not at all. */
  suits(terms: Terms, mono: number, wall: number): "enough" | "short" | "no" {
    const isOurs = !this.isOver && !this.writer && !this.hold.isRevoked;
    return isOurs ? this.admission.suits(terms, mono, wall, this.services.window) : "no";
  }

  /** May this caller come in without asking? */
  isOpenTo(terms: Terms, mono: number, wall: number): boolean {
    return this.admission.isOpen(mono, wall) && this.suits(terms, mono, wall) === "enough";
  }

  /** Does it stay with nobody inside? */
  get isKept(): boolean {
    return false;
  }

  /** A writer of this process comes: what nobody uses ends. */
  giveWay(): void {}

  protected leaseFor({ lease }: Terms): number {
    return lease;
  }

  /**
   * Asks Redis whether more readers may come in, on these terms. `done`: told when that was sent, and with what Redis has not
   * answered.
   */
  join(terms: Terms, done: (sent: Instant, error?: unknown) => void): void {
    // RACE: a join is a user. Its answer may come behind the unlock of the last reader, and would be about a hold that was given back.
    this.admission.isAsking = true;
    this.stays();
    const sent = now();
    const lease = this.leaseFor(terms);
    this.hold.asks(lease, sent.mono);
    this.kind.sharing?.join(this.hold, lease, {
      answered: (answer) => {
        if (!this.admission.answered(sent, answer)) this.lose("gone");
        done(sent);
        this.#rests();
      },
      failed: (error) => {
        this.admission.close();
        done(sent, error);
        this.#rests();
      },
    });
  }

  /** The same without asking, behind a turn of the event loop: readers that come and go must not keep that to themselves. */
  rest(done: (sent: Instant) => void): void {
    this.admission.isAsking = true;
    this.stays();
    setImmediate(() => {
      this.admission.isAsking = false;
      done(this.admission.asked);
      this.#rests();
    });
  }

  /** The writer has left, and its readers stay. */
  outlives(home: JointHome): void {
    this.home = home;
    this.writer = null;
    this.#isInside = false;
    this.services.inbox.expected.set(this.hold.id, this);
  }

  // ---- its users leave

  vacated(lease: SharedLease): Promise<void> {
    const held = this.leaves(lease);
    // Of a reader that came in a writer's time the writer's call has told.
    if (lease.kind !== "write") this.tellRelease(lease, held);
    if (!this.isIdle) {
      if (lease.isConfirmed) return this.confirm(lease, held);
      lease.settle();
      return Promise.resolve();
    }
    if (!lease.isConfirmed && this.keep(lease)) {
      lease.settle();
      return DONE;
    }
    if (lease.isConfirmed || !this.isShared || !this.admission.isOpen(clocks.mono.now(), clocks.wall.now()))
      return this.release(lease, held);
    // Readers that come and go together leave in one turn of the event loop, and come back in the same one.
    return new Promise((resolve) => {
      this.#leaving = { lease, held, resolve };
      atTurnEnd(this.#leaves);
    });
  }

  readonly #leaves = (): void => {
    const leaving = this.#leaving;
    this.#leaving = null;
    leaving?.resolve(this.release(leaving.lease, leaving.held));
  };

  /** Somebody is inside again, or will be. */
  protected stays(): void {
    const leaving = this.#leaving;
    this.#leaving = null;
    leaving?.lease.settle();
    leaving?.resolve();
  }

  /** A join was answered: without a user the hold goes. */
  #rests(): void {
    if (this.isIdle && !this.#leaving) this.leave();
  }

  /** Has nobody any use for it? */
  protected get isIdle(): boolean {
    return this.users.size === 0 && !this.admission.isAsking && !this.writer && !this.isOver;
  }

  /** May it stay with this process, though its last user has left? */
  protected keep(_lease: SharedLease): boolean {
    return false;
  }

  protected release(turn: Turn, held: number): Promise<void> {
    const { cleanup } = this.services;
    this.end();
    cleanup.releases++;
    return new Promise((resolve) => {
      this.kind.release(this.hold, new Release(this.home, NOBODY, turn, held, resolve));
    });
  }

  // ---- it is lost

  override renewed(hold: Hold, sent: Instant, answer: RenewAnswer): void {
    if (answer.is !== "renewed" && !this.isOver && this.writer) this.writer.lose(answer.is);
    else super.renewed(hold, sent, answer);
  }

  override lose(reason: LossReason, by: string | null = null): void {
    this.admission.isClosed = true;
    this.writer = null;
    super.lose(reason, by);
  }

  protected override isOwn(): boolean {
    return !this.#isInside;
  }

  /** Its shrinking was answered. `lease`: of the writer that has left. */
  shrunk(lease: SharedLease, held: number, answer: ReleaseAnswer): Promise<void> | undefined {
    // RACE: first, as in `confirm`.
    if (answer.is !== "released") this.lose("gone");
    const loss = this.home.lossOf(lease, held, answer, false);
    return loss ? failing(loss) : undefined;
  }
}

/** No acquisition waits for what becomes of a release: the next one is a hold of its own. */
const NOBODY = { woken(): void {} };

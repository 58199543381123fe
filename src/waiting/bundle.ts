import { FIRST_REPLY } from "../defaults.ts";
import { type LockLostError, LockUnavailableError } from "../errors.ts";
import type { Caller } from "../events.ts";
import type { Hold } from "../lease/hold.ts";
import { releaseOutcome, unconfirmed } from "../lease/release-outcome.ts";
import { type LeaseOwner, SharedLease, told } from "../lease/shared-lease.ts";
import type { Terms } from "../options.ts";
import type { AllAnswer } from "../redis/replies.ts";
import { onAbort } from "../util/abort.ts";
import { failing } from "../util/stacks.ts";
import { Timer } from "../util/timers.ts";
import type { AllAtOnce, LockKind } from "./lock-kind.ts";
import type { Entrance, LockManager } from "./lock-manager.ts";

/** Why several locks were not taken: the first of them that is not free. `isHeld`: somebody is known to hold it. */
export interface InTheWay {
  readonly index: number;
  readonly isHeld: boolean;
}

/** The call that asks, until that is answered. */
interface Pending {
  readonly resolve: (outcome: readonly SharedLease[] | InTheWay) => void;
  readonly reject: (error: unknown) => void;
  readonly unlisten: (() => void) | undefined;
}

interface Leaving {
  readonly tenure: SharedLease;
  /** For how many ms. */
  readonly held: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Several locks that are taken by one command, each with a hold of its own, beside the turns of this process at them: who
 * waits for one of them here waits in Redis, and gets it from there.
 *
 * | state | true in Redis | leaves it by |
 * |---|---|---|
 * | asking | unknown: the command is on its way | owner → holding · anything else → over |
 * | holding | we own those whose tenures live | the last tenure ends → over |
 * | over | nothing of ours, or it is being withdrawn | – |
 *
 * A caller who has gone while this asks (his signal, `close()`, no answer in time) leaves the answer to be given back.
 */
export class Bundle extends Timer implements LeaseOwner {
  readonly kind: LockKind;
  readonly #all: AllAtOnce;
  readonly #room: LockManager;
  readonly #holds: readonly Hold[];
  readonly #since = performance.now();
  readonly #tenures = new Set<SharedLease>();
  #caller: Pending | null = null;
  #leaving: Leaving[] = [];

  /** `all`: of the kind. */
  constructor(kind: LockKind, all: AllAtOnce, names: readonly string[], room: LockManager) {
    super();
    this.kind = kind;
    this.#all = all;
    this.#room = room;
    this.#holds = names.map((name) => room.newHold(name));
    for (const hold of this.#holds) room.mailbox.expect(hold, this);
  }

  /** Is a lock held, or may Redis have something of it that it has not answered about? */
  get isUnderWay(): boolean {
    return this.#tenures.size > 0 || this.#room.commands.mayHaveReached(this.#since);
  }

  /** Resolves with a tenure for each lock, or with what is in the way. */
  ask({ terms, wait, signal, by }: Entrance & { by: Caller }): Promise<readonly SharedLease[] | InTheWay> {
    return new Promise((resolve, reject) => {
      const unlisten = signal && onAbort(signal, () => this.refuse(signal.reason));
      this.#caller = { resolve, reject, unlisten };
      this.#room.count(1);
      const answerBy = this.#since + Math.min(this.#room.replyTimeout, Math.max(wait, FIRST_REPLY));
      this.#room.timers.set(this, answerBy);
      void this.#ask(terms, by);
    });
  }

  async #ask(terms: Terms, by: Caller): Promise<void> {
    const [first] = this.#holds;
    const { hearing } = this.#room;
    const channel = first ? hearing.told(hearing.grantChannel(first.name), false) : null;
    for (const hold of this.#holds) hold.asks(terms.lease);
    try {
      const answer = await this.#all.attempt(this.#holds, terms.lease, channel?.name ?? null);
      if (answer.is === "owner") this.#own(answer, terms, by);
      else if (answer.is === "held" || answer.is === "queued") {
        for (const hold of this.#holds) this.#room.mailbox.forget(hold);
        this.#settle()?.resolve({ index: answer.index, isHeld: answer.is === "held" });
      }
      // A copy. The first one may have been in time, and own some of them.
      else this.#giveBack();
    } catch (error) {
      this.#withdraw();
      this.#settle()?.reject(new LockUnavailableError(null, "the command failed", error));
    }
    this.#leaveIfOver();
  }

  #own(answer: AllAnswer & { is: "owner" }, terms: Terms, by: Caller): void {
    for (const [i, hold] of this.#holds.entries()) {
      hold.validity.answered(hold.sent, answer.at);
      hold.owned({ at: answer.at, ttl: answer.ttl, token: answer.tokens[i] ?? 0 });
    }
    // One was taken away by force before this was read, or the answer took longer than the lease.
    const isSure = this.#holds.every((hold) => !hold.isRevoked && hold.validity.left() > 0);
    const caller = isSure ? this.#settle() : null;
    if (!caller) {
      this.#giveBack();
      return;
    }
    const tenures = this.#holds.map((hold) => new SharedLease(hold, terms, this, by));
    const waited = performance.now() - this.#since;
    for (const tenure of tenures) {
      this.#tenures.add(tenure);
      this.#room.watchdog.watch(tenure, this.kind);
    }
    caller.resolve(tenures);
    // A listener may end them, or the client.
    for (const tenure of tenures) this.#room.events.tell("acquire", () => ({ ...told(tenure), waited }));
  }

  /** Nobody wants what was taken, or nobody can be sure of it: as if somebody had been in the way. */
  #giveBack(): void {
    this.#withdraw();
    this.#settle()?.resolve({ index: 0, isHeld: false });
  }

  #withdraw(): void {
    for (const hold of this.#holds) {
      this.#room.mailbox.forget(hold);
      this.#room.withdraw(this.kind, hold);
    }
  }

  // ---- the caller

  /** He gets this answer at once; what Redis answers is given back. */
  refuse(reason: unknown): void {
    this.#settle()?.reject(reason);
  }

  override ring(): void {
    this.refuse(
      new LockUnavailableError(null, "Redis did not answer in time", this.#room.commands.trouble()),
    );
  }

  #settle(): Pending | null {
    const caller = this.#caller;
    if (!caller) return null;
    this.#caller = null;
    caller.unlisten?.();
    this.#room.timers.clear(this);
    this.#room.count(-1);
    return caller;
  }

  // ---- what messages tell

  /** These holds never queue: a grant of one can only be what the answer tells too. */
  granted(): boolean {
    return true;
  }

  revoked(id: string, by: string | null): void {
    for (const hold of this.#holds) if (hold.id === id) hold.isRevoked = true;
    for (const tenure of this.#tenures) if (tenure.hold.id === id) tenure.lose("revoked", by);
  }

  // ---- the tenures

  /** Those that are left in one go are released by one command. */
  vacated(tenure: SharedLease): Promise<void> {
    const held = performance.now() - tenure.since.mono;
    const left = new Promise<void>((resolve) => {
      if (this.#leaving.length === 0) {
        // From now on, or `close()` could find nothing to wait for.
        const answered = this.#room.releasing();
        queueMicrotask(() => void this.#release().finally(answered));
      }
      this.#leaving.push({ tenure, held, resolve, reject: (error) => resolve(failing(error)) });
    });
    this.#over(tenure);
    this.#room.events.tell("release", () => ({ ...told(tenure), held }));
    return left;
  }

  async #release(): Promise<void> {
    const leaving = this.#leaving.splice(0);
    const holds = leaving.map(({ tenure }) => tenure.hold);
    const { epoch } = this.#room.commands;
    const answers = await this.#all.release(holds).catch((error: Error) => holds.map(() => error));
    const isBroken = this.#room.commands.epoch !== epoch;
    for (const [i, { tenure, held, resolve, reject }] of leaving.entries()) {
      const { hold } = tenure;
      const answer = answers[i] ?? new Error("no answer for this lock");
      if (answer instanceof Error) {
        this.#room.withdraw(this.kind, hold);
        reject(unconfirmed(hold, answer));
        continue;
      }
      const loss = releaseOutcome(hold, answer, isBroken);
      if (loss) reject(this.#told(tenure, held, loss));
      else resolve();
    }
  }

  lost(tenure: SharedLease, error: LockLostError): void {
    this.#over(tenure);
    this.#room.withdraw(this.kind, tenure.hold);
    this.#told(tenure, performance.now() - tenure.since.mono, error);
  }

  #told(tenure: SharedLease, held: number, error: LockLostError): LockLostError {
    this.#room.events.tell("lost", () => ({ ...told(tenure), held, error }));
    return error;
  }

  #over(tenure: SharedLease): void {
    this.#room.watchdog.unwatch(tenure);
    this.#room.mailbox.forget(tenure.hold);
    this.#tenures.delete(tenure);
    this.#leaveIfOver();
  }

  #leaveIfOver(): void {
    if (this.#tenures.size === 0) this.#room.unbundled(this);
  }
}

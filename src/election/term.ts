import { checkProclaimed, type Term } from "../api/election.ts";
import { type LockLostError, released } from "../api/errors.ts";
import type { FollowedHolds } from "../api/events.ts";
import { tell, telling, thrownAt } from "../api/stacks.ts";
import { nounOf } from "../api/wording.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import { lockHandle } from "../locks/lease.ts";
import { unavailable } from "../redis/replies.ts";
import { inspectAs } from "../util/print.ts";
import { short } from "../util/quote.ts";
import { visible } from "../util/visible.ts";
import type { ElectionKind } from "../wires/election.ts";

/** A term whose leader has the lock of its election. */
export class LeaderTerm implements Term {
  readonly name: string;
  readonly token: number;
  readonly #shared: SharedLease;
  readonly #lease: ReturnType<typeof lockHandle>;
  readonly #kind: ElectionKind;
  /** Also ends its work, as a loss does. */
  readonly #ending: AbortSignal | undefined;
  #signal: AbortSignal | null = null;
  #value = "";

  constructor(shared: SharedLease, kind: ElectionKind, ending: AbortSignal | undefined) {
    this.name = shared.name;
    this.token = shared.token;
    this.#shared = shared;
    this.#lease = lockHandle(shared);
    this.#kind = kind;
    this.#ending = ending;
  }

  get value(): string {
    return this.#value;
  }

  get signal(): AbortSignal {
    const { signal } = this.#lease;
    this.#signal ??= this.#ending ? telling(AbortSignal.any([signal, this.#ending])) : signal;
    return this.#signal;
  }

  get held(): boolean {
    return this.#lease.held;
  }

  get lost(): LockLostError | null {
    this.#shared.expire();
    return this.#shared.loss;
  }

  assertHeld(): void {
    this.#lease.assertHeld();
  }

  get remaining(): number {
    return this.#lease.remaining;
  }

  async proclaim(value: string): Promise<void> {
    checkProclaimed(this.name, value);
    this.assertHeld();
    this.#value = value;
    const { hold, terms } = this.#shared;
    const is = await this.#kind.proclaim(hold, value, terms.lease).catch((error: unknown) => {
      throw unavailable(this.name, "what its leader proclaims was not confirmed", error, nounOf(this.#kind));
    });
    if (is === "stands") return;
    this.#shared.lose(is);
    // It has resigned meanwhile: nothing was lost.
    throw tell(thrownAt(this.#shared.loss ?? released(this.name, nounOf(this.#kind)), this.proclaim));
  }

  resign(): Promise<void> {
    return this.#lease.leave();
  }

  /** Runs the leader's body, in the stores of whatever follows this term. */
  lead<T>(body: (term: Term) => T, holds: FollowedHolds | null): T {
    const go = (): T => body(this);
    return holds ? holds.within(this.#shared, go) : go();
  }

  toJSON(): object {
    const { name, token, value, held } = this;
    return { name, token, value: short(visible(value)), held };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#lease[Symbol.asyncDispose]();
  }
}

inspectAs(LeaderTerm, "Term");

import { LockError, quote } from "../errors.ts";
import { withoutBits } from "../hold-ids.ts";
import type { Hold } from "../lease/hold.ts";
import type { Renewal } from "../lease/renewer.ts";
import type { WantedPermits } from "../options.ts";
import { PermitsError } from "../permits-error.ts";
import type { CountedAnswer, CountedInspection } from "../redis/counted-replies.ts";
import type { AttemptAnswer, Inspected, ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import type { Ask, Leavable, LockKind, Told } from "../waiting/lock-kind.ts";
import type { CountedScripts } from "./counted-scripts.ts";

/**
 * A semaphore, for the waiting engine: each caller has a hold and an entry of its own, so that the order holds over all
 * processes, whatever number of permits each wants.
 */
export class SemaphoreKind implements LockKind {
  readonly label = "semaphore";
  readonly eventKind = "semaphore";
  readonly protocol = "semaphore";
  readonly wake = { by: "grant", solitary: true } as const;
  readonly localPasses = 0;
  readonly hasStays = false;
  readonly releaseAll = null;
  readonly answer = null;
  readonly recount = null;
  readonly together = null;
  /** A caller's hold is nobody else's: nothing is queued in its stead. */
  readonly yield = null;
  readonly batch: number;
  readonly isConfirmed: boolean;
  readonly #scripts: CountedScripts;

  constructor(scripts: CountedScripts) {
    this.#scripts = scripts;
    this.batch = scripts.batch;
    this.isConfirmed = scripts.isConfirmed;
  }

  attempt(hold: Hold, ask: Ask, told: Told<AttemptAnswer>): void {
    const mode = ask.mode === "yield" ? "queue" : ask.mode;
    const { lease, entryTtl, channel, head } = ask;
    const { units, of: permits } = head?.terms.permits ?? ONE;
    const wanted = {
      mode,
      as: "p",
      lease,
      entryTtl,
      channel,
      passes: 0,
      units,
      upTo: units,
      permits,
    } as const;
    this.#scripts.attempt(hold, wanted, {
      answered: (answer) => {
        const error = refusal(hold.name, answer, permits, units);
        told.answered(error ? { is: "refused", at: answer.at, error } : asAttempt(answer));
      },
      failed: (error) => told.failed(error),
    });
  }

  release(hold: Hold, told: Told<ReleaseAnswer>): void {
    this.#scripts.release(hold, 0, told);
  }

  withdraw({ id, name, entry = "" }: Leavable): Promise<unknown> {
    return this.#scripts.withdraw({ id, name, entry, token: 0 });
  }

  renew(holds: readonly Renewal[], timeout: number): Promise<RenewAnswer[]> {
    return this.#scripts.renew(holds, timeout);
  }

  confirm(
    hold: { readonly name: string; readonly id: string },
    ttl: number,
    timeout: number,
  ): Promise<RenewAnswer> {
    return this.#scripts.confirm(hold, ttl, timeout);
  }

  async besides(name: string, holds: readonly Hold[]): Promise<number> {
    const { permits, holders } = await this.#scripts.inspect(name);
    const ids = new Set(holds.map(({ id }) => withoutBits(id)));
    return holders.reduce(
      (left, { holder, units }) => (ids.has(holder) ? left - units : left),
      permits ?? Number.POSITIVE_INFINITY,
    );
  }

  /** Of its holders the first one, and all that wait. */
  async inspect(name: string): Promise<Inspected> {
    const { holders, waiters } = await this.#scripts.inspect(name);
    const [first] = holders;
    return {
      holder: first?.holder ?? null,
      token: first?.token ?? 0,
      remaining: first?.remaining ?? null,
      kept: false,
      waiters: waiters.map(({ holder }) => holder),
    };
  }

  async forceRelease(name: string, label: string | null): Promise<boolean> {
    return (await this.endAll(name, label)) > 0;
  }

  // ---- what a semaphore has beside a lock

  /** From now on so many permits count for all. */
  async setPermits(name: string, permits: number): Promise<void> {
    await this.#scripts.setPermits(name, permits);
  }

  look(name: string): Promise<CountedInspection> {
    return this.#scripts.inspect(name);
  }

  /** Resolves with how many holders there were. */
  endAll(name: string, label: string | null): Promise<number> {
    return this.#scripts.forceRelease(name, null, label);
  }
}

const ONE: WantedPermits = { units: 1, of: null };

/** What a caller is told that cannot have its permits, however long it waits. Null: it can. */
function refusal(name: string, answer: CountedAnswer, given: number | null, units: number): LockError | null {
  if (answer.is === "crowded") return new LockError("TOO_MANY_HOLDS", name, crowded(name));
  return answer.is === "differs" ? new PermitsError(name, answer.permits, given, units) : null;
}

const crowded = (name: string): string =>
  `Semaphore ${quote(name)} has 10 000 holders, which is the most: use several semaphores, or let one caller hold the permits of many.`;

/** As the engine knows it: `waits` is what it makes of a lock that one process keeps, and permits are not kept. */
function asAttempt(answer: CountedAnswer): AttemptAnswer {
  switch (answer.is) {
    case "owner": {
      const { at, token, ttl, already } = answer;
      return { is: "owner", at, token, ttl, already, waits: false, isTold: false };
    }
    case "held": {
      const { at, ttl, position } = answer;
      return { is: "held", at, ttl, position, told: 0 };
    }
    case "gone":
    case "stale":
      return { is: answer.is, at: answer.at };
  }
  throw new TypeError(`unexpected answer ${answer.is}`);
}

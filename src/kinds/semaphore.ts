import { LockError, PermitsError, quote } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import type { CountedAnswer, CountedInspection } from "../redis/counted-replies.ts";
import type { AttemptAnswer } from "../redis/replies.ts";
import type { WantedPermits } from "../terms.ts";
import type { Ask, LockKind, Meant, Pooling, Told } from "../waiting/lock-kind.ts";
import { asAttempt, CountedKind } from "./counted.ts";
import type { CountedScripts } from "./counted-scripts.ts";

/** A semaphore, and the same where each caller has a place of its own. `passes`: how often permits are passed on in this process. */
export function semaphoreKinds(
  scripts: CountedScripts,
  passes: number,
): Record<"pooled" | "fair", SemaphoreKind> {
  return { pooled: new SemaphoreKind(scripts, passes, false), fair: new SemaphoreKind(scripts, 0, true) };
}

/** A semaphore, for the waiting engine. */
export class SemaphoreKind extends CountedKind implements LockKind {
  readonly label = "semaphore";
  readonly eventKind = "semaphore";
  readonly protocol = "semaphore";
  readonly wake: { readonly by: "grant"; readonly solitary: boolean };
  readonly localHandoffs: number;
  /** Their holds have tokens in Redis. Permits fence nothing: others hold some at the same time. */
  readonly hasTokens = false;
  readonly pooling?: Pooling;
  /** The line of a process has its place also while it has permits: nothing is queued in their stead. */
  readonly yield = null;

  /** `isFair`: each caller has a hold and an entry of its own, so that the order holds over all processes. */
  constructor(scripts: CountedScripts, passes: number, isFair: boolean) {
    super(scripts);
    this.wake = { by: "grant", solitary: isFair };
    this.localHandoffs = passes;
    if (!isFair)
      this.pooling = {
        shrink: ({ id, name, token, passes }, stays, told) =>
          scripts.release({ id, name, token: token + passes }, stays, told),
      };
  }

  attempt(hold: Hold, ask: Ask, told: Told<AttemptAnswer>): void {
    const mode = ask.mode === "yield" ? "queue" : ask.mode;
    const { lease, entryTtl, channel, head } = ask;
    const { units, of: permits } = head?.terms.permits ?? ONE;
    // Where callers share it, for those behind the first too. An entry stays as it was made.
    const { upTo, callers } = ask.run ?? { upTo: units, callers: 1 };
    const wanted = {
      mode,
      as: "p",
      lease,
      entryTtl,
      channel,
      passes: ask.passes + callers - 1,
      units,
      upTo,
      permits,
    } as const;
    this.scripts.attempt(hold, wanted, {
      answered: (answer) => {
        const error = refusal(hold.name, answer, permits, units);
        told.answered(error ? { is: "refused", at: answer.at, error } : asAttempt(answer, false));
      },
      failed: (error) => told.failed(error),
    });
  }

  async besides(name: string, holds: readonly Hold[]): Promise<number> {
    const { permits, holders } = await this.scripts.inspect(name);
    const ids = new Set(holds.map(({ id }) => id));
    return holders.reduce(
      (left, { hold, party }) => (ids.has(hold) ? left - party.units : left),
      permits ?? Number.POSITIVE_INFINITY,
    );
  }

  forceRelease(name: string, label: string | null, meant: Meant): Promise<number> {
    return this.scripts.forceRelease(name, null, label, meant);
  }

  // ---- what a semaphore has beside a lock

  /** From now on so many permits count for all. */
  async setPermits(name: string, permits: number): Promise<void> {
    await this.scripts.setPermits(name, permits);
  }

  look(name: string): Promise<CountedInspection> {
    return this.scripts.inspect(name);
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

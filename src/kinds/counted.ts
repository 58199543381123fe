import type { Grant, Hold } from "../lease/hold.ts";
import type { Renewal, Renewer } from "../lease/renewer.ts";
import type { HoldingParty } from "../party.ts";
import type { CountedAnswer } from "../redis/counted-replies.ts";
import { unexpected } from "../redis/fields.ts";
import {
  type AttemptAnswer,
  type Inspected,
  inspected,
  type ReleaseAnswer,
  type RenewAnswer,
} from "../redis/replies.ts";
import type { Leavable, LockKind, Told } from "../waiting/lock-kind.ts";
import type { CountedScripts } from "./counted-scripts.ts";

/** What permits, readers and writers have in common for the waiting engine. */
export abstract class CountedKind implements Renewer {
  abstract readonly protocol: "rw" | "semaphore";
  readonly hasStays = false;
  abstract readonly hasTokens: boolean;
  readonly releaseAll: LockKind["releaseAll"] = null;
  readonly answer = null;
  readonly recount = null;
  readonly together = null;
  readonly batch: number;
  readonly isConfirmed: boolean;
  protected readonly scripts: CountedScripts;

  constructor(scripts: CountedScripts) {
    this.scripts = scripts;
    this.batch = scripts.batch;
    this.isConfirmed = scripts.isConfirmed;
  }

  release({ id, name, token, passes }: Hold, told: Told<ReleaseAnswer>): void {
    this.scripts.release({ id, name, token: token + passes }, 0, told);
  }

  withdraw({ id, name, label = "", entry = "" }: Leavable): Promise<unknown> {
    return this.scripts.withdraw({ id, name, label, entry });
  }

  renew(holds: readonly Renewal[], timeout: number): Promise<RenewAnswer[]> {
    return this.scripts.renew(holds, timeout);
  }

  confirm(
    hold: { readonly name: string; readonly id: string; readonly label: string },
    ttl: number,
    timeout: number,
  ): Promise<RenewAnswer> {
    return this.scripts.confirm(hold, ttl, timeout);
  }

  /** Of its own holders the first one, and all that wait for the same, whatever for. */
  async inspect(name: string): Promise<Inspected> {
    const { at, holders, waiters } = await this.scripts.inspect(name);
    const own = holders.filter(({ party }) => this.isOwn(party));
    const kept = own.length > 0 && own.every((holder) => holder.kept);
    return inspected(own[0]?.party ?? null, waiters, at, kept);
  }

  /** The first one, whatever it is to this kind: writers wait for readers, too. */
  async holder(name: string): Promise<Inspected> {
    const { at, holders } = await this.scripts.inspect(name, true);
    return inspected(holders[0]?.party ?? null, [], at);
  }

  protected isOwn(_holder: HoldingParty): boolean {
    return true;
  }
}

/**
 * What the engine takes as it is; all others are a refusal, which each kind words by itself. `isShared`: a process keeps the hold
 * for several callers, so it matters to it that somebody waits.
 */
export function asAttempt(answer: CountedAnswer, isShared: boolean): AttemptAnswer & Pick<Grant, "units"> {
  switch (answer.is) {
    case "owner": {
      const { at, token, ttl, already, units, isTold } = answer;
      return { is: "owner", at, token, ttl, already, waits: isShared && answer.waits, isTold, units };
    }
    case "held": {
      const { at, ttl, position, told } = answer;
      return { is: "held", at, ttl, position, told };
    }
    case "gone":
    case "stale":
      return { is: answer.is, at: answer.at };
  }
  throw unexpected(answer);
}

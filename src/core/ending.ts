import type { ReleaseAnswer } from "../redis/replies.ts";

/**
 * How the command that ends a hold is answered, for all callers that have left the hold.
 *
 * RACE: two callers of a hold leave, and the second one ends it. Both commands may be under way then,
 * and the first one may run after the second one, or a second time: Redis did not know its script at
 * first, or the connection broke before its reply. Then it finds no hold, and that proves nothing. So
 * the answer to the command that ended the hold counts for all.
 */
export class Ending {
  #is: Ended | "sent" | null = null;
  #followers: ((ended: Ended) => void)[] | null = null;

  /** The command that ends the hold is sent. */
  sent(): void {
    this.#is = "sent";
  }

  /** It was answered, or not. Its first outcome counts. */
  answered(ended: Ended): void {
    if (this.#is !== "sent") return;
    this.#is = ended;
    for (const follow of this.#followers ?? []) follow(ended);
  }

  /** Its outcome. Null: no command has ended the hold. */
  async outcome(): Promise<Ended | null> {
    if (this.#is !== "sent") return this.#is;
    this.#followers ??= [];
    const followers = this.#followers;
    return new Promise((resolve) => followers.push(resolve));
  }
}

/** The answer to a command that ended a hold. */
export interface Ended {
  /** Null: there was none. */
  readonly answer: ReleaseAnswer | null;
  /** Was the connection lost in between? */
  readonly isBroken?: boolean;
  /** Why there was no answer. */
  readonly error?: unknown;
}

import type { LockClient, LockTimeoutError } from "../../../index.ts";
import { showParty } from "../../../inside.ts";
import { quoteWhole } from "../../../util/quote.ts";
import { showDuration } from "../durations.ts";
import type { Output } from "../output.ts";
import { lockOf } from "./hold.ts";
import type { Wanted } from "./plan.ts";

/** The time to the first report, and the interval after it, in ms. */
const FIRST = 500;
const AGAIN = 10_000;

/**
 * Reports on stderr for which holder this program waits, or that Redis is away: the first time, and
 * at each change. Ends with `stop()`.
 */
export class WaitReport {
  readonly #look: () => Promise<string | null>;
  readonly #output: Output;
  readonly #since = performance.now();
  #timer: NodeJS.Timeout;
  #said = "";
  #isOver = false;

  /** `look`: the holder, in words; null: unknown. */
  constructor(look: () => Promise<string | null>, output: Output) {
    this.#look = look;
    this.#output = output;
    this.#timer = setTimeout(() => this.#report(), FIRST);
  }

  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  async #report(): Promise<void> {
    let what: string | null;
    let why = "";
    try {
      what = await this.#look();
    } catch (error) {
      what = "Redis";
      why = `: ${(error as Error).message}`;
    }
    if (this.#isOver) return;
    if (what !== null && what !== this.#said) {
      const time = this.#said === "" ? "" : ` (for ${showDuration(performance.now() - this.#since)})`;
      this.#output.say(`Waiting${time} for ${what}${why}`.replace(/\.?$/, "."));
      this.#said = what;
    }
    this.#timer = setTimeout(() => this.#report(), AGAIN);
  }
}

/** The holder in words. Null: unknown. */
export async function holderInWords(locks: LockClient, name: string, wanted: Wanted): Promise<string | null> {
  if (wanted.kind === "once") return null;
  if (wanted.kind === "permit") {
    const { holders, permits } = await locks.semaphore(name).inspect();
    const [first] = holders;
    if (!first || permits === null) return null;
    return permits === 1
      ? heldBy(name, showParty(first))
      : `${quoteWhole(name)}: all ${permits} slots are in use, one by ${showParty(first)}`;
  }
  if (wanted.kind === "lock") {
    const { holder } = await lockOf(locks, name, { ...wanted, kind: "lock" }).inspect();
    return holder === null ? null : heldBy(name, showParty(holder));
  }
  const { holders, mode } = await locks.readWriteLock(name).inspect();
  const [first] = holders;
  if (!first) return null;
  const others = holders.length > 1 ? ` and ${holders.length - 1} more` : "";
  return heldBy(name, `${mode === "read" ? "the reader " : ""}${showParty(first)}${others}`);
}

/** The same, from the error that ended the wait: Redis no longer has the answer. */
export const withHolder = (name: string, { holder }: LockTimeoutError): string =>
  heldBy(name, holder === null ? "another process" : showParty(holder));

const heldBy = (name: string, who: string): string => `${quoteWhole(name)}: held by ${who}`;

import type { LockLostError } from "../../index.ts";
import { showDuration } from "../durations.ts";
import type { Output } from "../output.ts";
import type { Group } from "./group.ts";
import type { Plan } from "./plan.ts";

/** What is held while the command runs. */
export interface Held {
  /** Aborts when it is lost. */
  readonly signal: AbortSignal;
  /** ms until it is lost unless it is renewed. */
  remaining(): number;
}

/** SIGKILL comes so long before the end, at the most, in ms: a late timer, and the time that processes take to die. */
const MARGIN_MOST = 250;
/** A timer is set for no longer than this, in ms. */
const LOOK_MOST = 60_000;
/** SIGKILL is repeated, because a process may be born while it goes around. In ms. */
const KILL_AGAIN = 50;

/**
 * Stops a command before others may get its lock.
 *
 * | what happens | the command gets |
 * |---|---|
 * | renewals fail, and `killAfter` is left of the lease | the first signal |
 * | they go on failing, and nothing is left | SIGKILL, just before the end: `lease.signal` aborts when others may get in, which is too late to start dying |
 * | the lock is taken by force, or is gone from Redis | the first signal at once, and SIGKILL after `killAfter`: others may be in already |
 * | this process stood still past the end | SIGKILL at once |
 * | `maxHold` is over | the first signal, and SIGKILL after `killAfter` |
 */
export class Guard {
  /** Why the command was stopped, or would have been. */
  cause: "lost" | "max-hold" | null = null;
  readonly #group: Group;
  readonly #held: Held;
  readonly #plan: Plan;
  readonly #output: Output;
  readonly #margin: number;
  #looking: NodeJS.Timeout | undefined;
  #holding: NodeJS.Timeout | undefined;
  #killing: NodeJS.Timeout | undefined;
  #isWarned = false;

  constructor(group: Group, held: Held, plan: Plan, output: Output) {
    this.#group = group;
    this.#held = held;
    this.#plan = plan;
    this.#output = output;
    this.#margin = Math.min(MARGIN_MOST, plan.lease / 20);
    if (plan.maxHold !== null) this.#holding = after(plan.maxHold, () => this.#tooLong());
    if (held.signal.aborted) this.#lost();
    else {
      held.signal.addEventListener("abort", this.#lost);
      this.#look();
    }
  }

  /** The command is gone. */
  end(): void {
    this.#held.signal.removeEventListener("abort", this.#lost);
    for (const timer of [this.#looking, this.#holding, this.#killing]) clearTimeout(timer);
  }

  #look(): void {
    const left = this.#held.remaining();
    const { killAfter } = this.#plan;
    if (left <= this.#margin) {
      this.#expired();
      return;
    }
    if (left > killAfter) this.#isWarned = false;
    else if (!this.#isWarned) this.#warn(left);
    const next = left > killAfter ? left - killAfter : left - this.#margin;
    this.#looking = after(Math.min(next, LOOK_MOST), () => this.#look());
  }

  #warn(left: number): void {
    this.#isWarned = true;
    if (!this.#stops("lost", `Redis does not renew the lease, which ends in ${showDuration(left)}`)) return;
    this.#signal(this.#plan.firstSignal);
  }

  #expired(): void {
    if (!this.#stops("lost", "the lease is over")) return;
    this.#kill();
  }

  readonly #lost = (): void => {
    clearTimeout(this.#looking);
    const { reason } = this.#held.signal;
    const loss = reason as LockLostError;
    if (loss.reason === "expired") {
      this.#expired();
      return;
    }
    if (!this.#stops("lost", loss.message)) return;
    this.#signal(this.#plan.firstSignal);
    this.#killing ??= after(this.#plan.killAfter, () => this.#kill());
  };

  #tooLong(): void {
    const { maxHold, firstSignal, killAfter } = this.#plan;
    this.cause ??= "max-hold";
    this.#output.fail(
      `The command has run for ${showDuration(maxHold)} (--max-hold), and gets ${firstSignal}.`,
    );
    this.#signal(firstSignal);
    this.#killing ??= after(killAfter, () => this.#kill());
  }

  /** Says what has happened, and whether the command is to stop for it. */
  #stops(cause: "lost", what: string): boolean {
    const isNew = this.cause !== cause;
    this.cause = cause;
    const { stopsOnLoss, firstSignal } = this.#plan;
    const then = stopsOnLoss ? `The command gets ${firstSignal}` : "The command goes on (--on-loss warn)";
    if (isNew) this.#output.fail(`${what.replace(/\.$/, "")}. ${then}.`);
    return stopsOnLoss;
  }

  /** One that is stopped would not hear it. */
  #signal(signal: NodeJS.Signals): void {
    this.#group.signal(signal);
    this.#group.signal("SIGCONT");
  }

  #kill(): void {
    this.#group.signal("SIGKILL");
    clearTimeout(this.#killing);
    this.#killing = after(KILL_AGAIN, () => this.#kill());
  }
}

const after = (ms: number, then: () => void): NodeJS.Timeout => setTimeout(then, Math.max(0, ms));

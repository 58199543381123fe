import type { LockLostError } from "../../../index.ts";
import { showDuration } from "../durations.ts";
import type { Output } from "../output.ts";
import type { Group } from "./group.ts";
import type { Plan } from "./plan.ts";

/** The lock during the command. */
export interface Held {
  /** Aborts when it is lost. */
  readonly signal: AbortSignal;
  /** ms until it is lost unless it is renewed. */
  readonly remaining: number;
}

/**
 * SIGKILL comes at most this many ms before the end: allows for a late timer, and for the time that
 * processes take to die.
 */
const MARGIN_MOST = 250;
/** The longest timer, in ms. */
const LOOK_MOST = 60_000;
/** SIGKILL is repeated, because a process may be started while it is being sent. In ms. */
const KILL_AGAIN = 50;

/**
 * Stops a command before other processes may get its lock.
 *
 * | what happens | the command gets |
 * |---|---|
 * | renewals fail, and `killAfter` is left of the lease | the first signal |
 * | they go on failing, and nothing is left | SIGKILL, just before the end: `lease.signal` aborts when others may get the lock, which is too late |
 * | the lock is force-released, or is gone from Redis | the first signal at once, and SIGKILL after `killAfter`: others may have it already |
 * | this process was paused past the end | SIGKILL at once |
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
  readonly #begin = performance.now();
  #looking: NodeJS.Timeout | undefined;
  #holding: NodeJS.Timeout | undefined;
  #killing: NodeJS.Timeout | undefined;
  #isWarned = false;
  /** What was last reported as the consequence of a loss. */
  #said: string | null = null;
  #isRefused = false;

  constructor(group: Group, held: Held, plan: Plan, output: Output) {
    this.#group = group;
    this.#held = held;
    this.#plan = plan;
    this.#output = output;
    this.#margin = Math.min(MARGIN_MOST, plan.lease / 20);
    this.#hold();
    if (held.signal.aborted) this.#lost();
    else {
      held.signal.addEventListener("abort", this.#lost);
      this.#look();
    }
  }

  /** This program was stopped, after stopping its command: continues both. */
  resume(): void {
    // RACE: the lease may have ended meanwhile. If the command were continued first, it would run
    // at the same time as the next holder's.
    if (this.#held.remaining <= this.#margin) this.#expired();
    this.#send("SIGCONT");
  }

  /** The command has ended. */
  end(): void {
    this.#held.signal.removeEventListener("abort", this.#lost);
    for (const timer of [this.#looking, this.#holding, this.#killing]) clearTimeout(timer);
  }

  #look(): void {
    const left = this.#held.remaining;
    const { killAfter } = this.#plan;
    if (left <= this.#margin) {
      this.#expired();
      return;
    }
    if (left > killAfter) this.#isWarned = false;
    else if (!this.#isWarned) this.#warn(left);
    const next = left > killAfter ? left - killAfter : left - this.#margin;
    this.#looking = after(next, () => this.#look());
  }

  #hold(): void {
    const { maxHold } = this.#plan;
    if (maxHold === null) return;
    const left = this.#begin + maxHold - performance.now();
    if (left <= 0) this.#tooLong(maxHold);
    else this.#holding = after(left, () => this.#hold());
  }

  #warn(left: number): void {
    this.#isWarned = true;
    this.#stop(this.#plan.firstSignal, `Redis does not renew the lease, which ends in ${showDuration(left)}`);
  }

  #expired(): void {
    this.#stop("SIGKILL", "The lease is over");
  }

  readonly #lost = (): void => {
    clearTimeout(this.#looking);
    const { reason } = this.#held.signal;
    const loss = reason as LockLostError;
    if (loss.reason === "expired") {
      this.#expired();
      return;
    }
    const { firstSignal, killAfter, stopsOnLoss } = this.#plan;
    this.#stop(firstSignal, loss.message);
    if (stopsOnLoss) this.#killing ??= after(killAfter, () => this.#kill());
  };

  #tooLong(maxHold: number): void {
    const { firstSignal, killAfter, stopsOnLoss } = this.#plan;
    // If the command survives a loss, the loss did not end it.
    if (!stopsOnLoss || this.cause === null) this.cause = "max-hold";
    this.#send(firstSignal);
    this.#killing ??= after(killAfter, () => this.#kill());
    this.#output.fail(
      `The command has run for ${showDuration(maxHold)} (--max-hold), and gets ${firstSignal}.`,
    );
  }

  /** For a loss. Sends the signal before it prints. */
  #stop(signal: NodeJS.Signals, what: string): void {
    const { stopsOnLoss } = this.#plan;
    if (stopsOnLoss || this.cause === null) this.cause = "lost";
    if (stopsOnLoss) {
      if (signal === "SIGKILL") this.#kill();
      else this.#send(signal);
    }
    const then = stopsOnLoss ? `the command gets ${signal}` : "the command goes on (--on-loss warn)";
    if (this.#said !== then) this.#output.fail(`${what.replace(/\.$/, "")}: ${then}.`);
    this.#said = then;
  }

  #send(signal: NodeJS.Signals): void {
    const isSent = this.#group.signal(signal);
    // A stopped process would not receive it.
    if (signal !== "SIGKILL" && signal !== "SIGCONT") this.#group.signal("SIGCONT");
    if (isSent || this.#isRefused) return;
    this.#isRefused = true;
    this.#output.fail(
      "The system refuses to signal the command, or a part of it: it belongs to another user.",
    );
  }

  #kill(): void {
    this.#send("SIGKILL");
    clearTimeout(this.#killing);
    this.#killing = after(KILL_AGAIN, () => this.#kill());
  }
}

/** At most as far ahead as timers can be set: the callback checks again. */
const after = (ms: number, then: () => void): NodeJS.Timeout =>
  setTimeout(then, Math.min(Math.max(0, ms), LOOK_MOST));

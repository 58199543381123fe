import { clocks } from "../util/clock.ts";
import { detached } from "../util/detached.ts";
import { atProcessEnd } from "../util/process-end.ts";
import { setImmediate, setTimeout } from "../util/real-timers.ts";
import type { Callback } from "./call.ts";
import type { Call, Link } from "./driver.ts";
import { redisAt } from "./trouble.ts";

/**
 * How often unanswered commands are looked at. A timer and an error object for every command would
 * cost 14 µs each.
 */
const SWEEP = 50;

/** Those that have commands. */
const all = new Set<Unanswered<Awaited>>();
let isTold = false;

interface Awaited extends Call {
  readonly callback: Pick<Callback<unknown>, "failed">;
}

/**
 * The commands of a connection that are not answered. Protects their callers from waiting without
 * an end: what is too late, or lost with the connection, is given up.
 */
export class Unanswered<Sent extends Awaited> {
  readonly calls = new Set<Sent>();
  isSwept = false;
  readonly #link: Link;
  readonly #look: (now: number) => void;
  /**
   * One timer for the client's life, set again by `refresh()`: making and unref'ing one costs more
   * than a command.
   */
  #sweeper: NodeJS.Timeout | undefined;

  /** `look`: called now and then while commands are not answered. */
  constructor(link: Link, look: (now: number) => void) {
    this.#link = link;
    this.#look = look;
  }

  readonly #sweep = (): void => {
    this.isSwept = false;
    this.#look(clocks.mono.now());
    if (this.calls.size > 0) this.sweepSoon();
    else all.delete(this);
  };

  sweepSoon(): void {
    this.isSwept = true;
    all.add(this);
    // Set again it takes the context of this call, as it did when it was made.
    detached(() => {
      if (this.#sweeper) this.#sweeper.refresh();
      // Behind the replies that came while this process stood still: they are not late, we are.
      else this.#sweeper = setTimeout(() => setImmediate(this.#sweep), SWEEP).unref();
    });
  }

  giveUp(isLost: (call: Sent) => boolean, why: (call: Sent) => Error): void {
    for (const call of this.calls) {
      if (!isLost(call)) continue;
      call.isOver = true;
      this.calls.delete(call);
      const error = why(call);
      queueMicrotask(() => call.callback.failed(error));
    }
  }

  /** The process ends: what is held back is written now. */
  flush(): void {
    this.#link.flush();
  }

  /** As messages name it: the Redis that may not have taken all that was unlocked; null: it has. */
  get unwritten(): string | null {
    if (![...this.calls].some(({ script }) => UNLOCKS.test(script.name))) return null;
    return this.#link.holdsBack ? redisAt(this.#link) : null;
  }
}

const UNLOCKS = /\/(release|release-at|release-stays|yield|end)$/;

/**
 * The process ends, and a connection has not taken all that was unlocked. Told once, on stderr: no
 * event and no warning of the process comes any more. Protects people from a search for the holder
 * of a lock that nobody holds.
 */
export function tellUnwritten(): void {
  if (isTold) return;
  for (const { unwritten } of all) {
    if (unwritten === null) continue;
    isTold = true;
    console.error(
      `[holdfast] The process ended before ${unwritten} took all commands, so locks that were just unlocked, or cached (linger), may ` +
        "stay held until their leases end: await locks.close() before process.exit().",
    );
    return;
  }
}

atProcessEnd(() => {
  // The program may end itself right after an unlock that it does not wait for.
  for (const unanswered of all) unanswered.flush();
  // What is held back by then is not written any more.
  tellUnwritten();
}, true);

import { clocks } from "../util/clock.ts";
import { detached } from "../util/detached.ts";
import { LinkedList } from "../util/linked-list.ts";
import { atProcessEnd } from "../util/process-end.ts";
import { queueMicrotask, setImmediate, setTimeout } from "../util/real-timers.ts";
import type { Call } from "./call.ts";
import type { Link } from "./driver.ts";
import { redisAt } from "./trouble.ts";

/**
 * How often unanswered commands are checked. A timer and an error object per command would cost 14
 * µs each.
 */
const SWEEP = 50;

/** Those that have commands. */
const all = new Set<Unanswered>();
let isTold = false;

/**
 * The unanswered commands of a connection. Protects their callers from waiting forever: a command
 * that is too late, or lost with the connection, is given up.
 */
export class Unanswered {
  readonly calls = new LinkedList<Call>();
  isSwept = false;
  readonly #link: Link;
  readonly #look: (now: number) => void;
  /**
   * One timer for the client's life, restarted by `refresh()`: making and unref'ing one costs more
   * than a command.
   */
  #sweeper: NodeJS.Timeout | undefined;

  /** `look`: called periodically while commands are unanswered. */
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
    // A restarted timer takes the context of this call, as at its creation.
    detached(() => {
      if (this.#sweeper) this.#sweeper.refresh();
      // After the replies that came while this process was suspended: the process was late, not
      // they.
      else this.#sweeper = setTimeout(() => setImmediate(this.#sweep), SWEEP).unref();
    });
  }

  giveUp(isLost: (call: Call) => boolean, why: (call: Call) => Error): void {
    for (const call of this.calls) {
      if (!isLost(call)) continue;
      call.isOver = true;
      this.calls.delete(call);
      const error = why(call);
      queueMicrotask(() => call.callback.failed(error));
    }
  }

  /** The process ends: held-back commands are written now. */
  flush(): void {
    this.#link.flush();
  }

  /** The Redis that may not have received all releases, as messages name it; null: it has. */
  get unwritten(): string | null {
    if (![...this.calls].some(({ script }) => UNLOCKS.test(script.name))) return null;
    return this.#link.holdsBack ? redisAt(this.#link) : null;
  }
}

const UNLOCKS = /\/(release|release-at|release-stays|yield|end)$/;

/**
 * The process ends, and a connection has not accepted all releases. Reported once, on stderr:
 * events and process warnings no longer arrive. Spares people a search for the holder of a lock
 * that no caller holds.
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
  // The program may exit right after an unlock that it does not await.
  for (const unanswered of all) unanswered.flush();
  // Commands that are held back at that point are no longer written.
  tellUnwritten();
}, true);

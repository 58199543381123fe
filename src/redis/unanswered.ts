import type { ClusterLike, RedisLike } from "../api/redis.ts";
import { clocks } from "../util/clock.ts";
import { detached } from "../util/detached.ts";
import { atProcessEnd } from "../util/process-end.ts";
import { setImmediate, setTimeout } from "../util/real-timers.ts";
import type { Call } from "./call.ts";
import { redisAt } from "./trouble.ts";
import { isCluster } from "./types.ts";

/**
 * How often unanswered commands are looked at. A timer and an error object for every command would
 * cost 14 µs each.
 */
const SWEEP = 50;

/** Those that have commands. */
const all = new Set<Unanswered>();
let isTold = false;

/**
 * The commands of a connection that are not answered. Protects their callers from waiting without
 * an end: what is too late, or lost with the connection, is given up.
 */
export class Unanswered {
  readonly calls = new Set<Call>();
  isSwept = false;
  readonly #redis: RedisLike | ClusterLike;
  readonly #look: (now: number) => void;
  /**
   * One timer for the client's life, set again by `refresh()`: making and unref'ing one costs more
   * than a command.
   */
  #sweeper: NodeJS.Timeout | undefined;

  /** `look`: called now and then while commands are not answered. */
  constructor(redis: RedisLike | ClusterLike, look: (now: number) => void) {
    this.#redis = redis;
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

  giveUp(isLost: (call: Call) => boolean, why: (call: Call) => Error): void {
    for (const call of this.calls) {
      if (!isLost(call)) continue;
      this.calls.delete(call);
      const error = why(call);
      queueMicrotask(() => call.callback.failed(error));
    }
  }

  /** As messages name it: the Redis that may not have taken all that was unlocked; null: it has. */
  get unwritten(): string | null {
    if (![...this.calls].some(({ script }) => UNLOCKS.test(script.name))) return null;
    const connections = isCluster(this.#redis) ? this.#redis.nodes() : [this.#redis];
    const holds = connections.some((one) => holdsBack((one as { stream?: Stream }).stream));
    return holds ? redisAt(this.#redis) : null;
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

// What is held back by then is not written any more.
atProcessEnd(tellUnwritten, true);

/** What of a socket tells whether it has taken all that was written. */
interface Stream {
  readonly writableLength?: number;
  /** Of TLS only. */
  readonly encrypted?: boolean;
  readonly writableBuffer?: readonly unknown[];
}

/**
 * Does it keep something for a turn of the event loop that will not come? Over TLS what was written
 * counts as pending until then, and only what comes after it is held back.
 */
function holdsBack(stream: Stream | undefined): boolean {
  if (!stream?.writableLength) return false;
  return !stream.encrypted || stream.writableBuffer?.length !== 0;
}

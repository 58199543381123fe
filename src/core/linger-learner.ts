import {
  KEPT_MOST,
  LINGER_AVERAGE,
  LINGER_REST_MAX,
  LINGER_REST_MIN,
  LINGER_SAVED_MAX,
  LINGER_TIMES,
  LINGER_TRIES,
  LINGER_TRIES_MAX,
  LINGER_WORTH,
} from "../defaults.ts";
import { between } from "../util/random.ts";

/**
 * Decides which unlocked locks a client keeps. It learns from the earlier ones: a kept lock that
 * its own process takes again saves two commands; one that another process wants costs that process
 * a round trip. It knows no Redis and no clock. A name that is not kept costs one table look-up and
 * no memory.
 */
export class LingerLearner {
  /** How many locks a client keeps at most, and how many names it remembers. */
  readonly most: number;
  /** `kept` and `takenAgain` are counted where locks are kept and taken. */
  readonly stats = { kept: 0, takenAgain: 0, recalled: 0, recalledUnused: 0, lapsed: 0 };
  readonly #names = new Map<string, Memory>();
  /** Cycles through the names to find one to forget. */
  #hand = this.#names.entries();
  /**
   * What keeping a name without a good record saves each time, smoothed over all such names. It
   * starts high: a client's first names are kept at once.
   */
  #average = LINGER_AVERAGE;
  /** The same for callers that come right back. */
  #back = 1;
  /** Calls until the next name is tried despite the average. */
  #untilTry = LINGER_TRIES;
  #untilBackTry = LINGER_TRIES;
  readonly #between: typeof between;

  constructor(most = KEPT_MOST, random = between) {
    this.most = most;
    this.#between = random;
  }

  /**
   * Would it keep this name now? Called once when the lock is acquired, and at unlock if the lock
   * can be kept. `saved`: what its time with this process has saved since it was acquired, in pairs
   * of commands. `isGranted`: it came by message, from another client, which may want it back.
   */
  keeps(name: string, at: number, saved = 0, isGranted = false): boolean {
    if (saved > 0) {
      // A used lock stays. Recorded now, because its time may end only after hours; and not each
      // time.
      if (saved >= LINGER_WORTH && saved <= LINGER_WORTH + ASKED) {
        const known = this.#names.get(name);
        // It will probably save as much again.
        if (!known?.isWorthIt) this.#learn(known ?? this.#memoryOf(name), 2 * saved, at);
      }
      return true;
    }
    const known = this.#names.get(name);
    if (known !== undefined) {
      known.isInUse = true;
      if (known.isWorthIt && at >= known.restsUntil) return true;
      // Another process had it, so keeping it would be a trial at that process's expense.
      if (isGranted) known.isTried = false;
      else if (known.isTried) return true;
      if (at < known.restsUntil) return false;
    }
    if (isGranted) return false;
    if (this.#average >= LINGER_WORTH) return true;
    if (--this.#untilTry > 0) return false;
    // At random, so that it does not follow the order in which names come: once in `calls` calls on
    // average, and less often if it saves less.
    const calls = Math.min(LINGER_TRIES * (LINGER_WORTH / this.#average) ** 2, LINGER_TRIES_MAX);
    this.#untilTry = Math.round(this.#between(1, 2 * calls - 1));
    this.#memoryOf(name).isTried = true;
    return true;
  }

  /**
   * Its time with this process is over. `saved`: see `keeps`. `isShared`: many clients may cache it
   * at a time, and a writer waits for all of them. So it rests after each recall, whatever it had
   * saved; otherwise readers that come back at once would delay each next writer.
   */
  ended(name: string, how: KeptEnd, saved: number, at: number, isShared = false): void {
    const { stats } = this;
    if (how === "recalled") stats.recalled++;
    if (how === "recalled" && saved === 0) stats.recalledUnused++;
    if (how === "lapsed") stats.lapsed++;
    // A lock that no other process wanted has cost nothing: it counts only if it saved something.
    const isGood = saved >= LINGER_WORTH;
    const isLesson = how === "recalled" || how === "wanted" || how === "not kept" || isGood;
    const known = isLesson ? this.#memoryOf(name) : this.#names.get(name);
    if (!known) return;
    known.isTried = false;
    if (isLesson) this.#learn(known, saved, at);
    if (isShared && (how === "recalled" || how === "wanted")) {
      known.rest = Math.max(known.rest, LINGER_REST_MIN);
      known.restsUntil = at + known.rest;
    }
  }

  /**
   * Should an unlock wait until the end of this turn of the event loop, for a caller of this
   * process that takes the lock right again?
   */
  comesBack(name: string): boolean {
    const known = this.#names.get(name);
    if (known !== undefined) known.isInUse = true;
    if ((known?.back ?? this.#back) >= 0.5) return true;
    if (--this.#untilBackTry > 0) return false;
    this.#untilBackTry = Math.round(this.#between(1, 2 * LINGER_TRIES - 1));
    return true;
  }

  /** An unlock has waited like that. `paid`: a caller came. */
  passedBack(name: string, paid: boolean): void {
    const now = paid ? 1 : 0;
    const isNews = paid !== this.#back >= 0.5;
    const known = isNews ? this.#memoryOf(name) : this.#names.get(name);
    if (known) known.back = known.back === null ? now : known.back + (now - known.back) / 4;
    this.#back += (now - this.#back) / 16;
  }

  #learn(known: Memory, saved: number, at: number): void {
    const counted = Math.min(saved, LINGER_SAVED_MAX);
    if (!known.isWorthIt) {
      // The average measures trial names, so names known to be worth it do not count.
      this.#average += (counted - this.#average) / 16;
      known.times = 0;
    }
    known.times = Math.min(known.times + 1, LINGER_TIMES);
    known.saved += (counted - known.saved) / known.times;
    known.isWorthIt = known.saved >= LINGER_WORTH;
    // A good result: other names may be worth it now, too.
    if (known.isWorthIt && known.times === 1) this.#untilTry = Math.min(this.#untilTry, LINGER_TRIES);
    known.rest = known.isWorthIt ? 0 : Math.min(Math.max(2 * known.rest, LINGER_REST_MIN), LINGER_REST_MAX);
    known.restsUntil = at + known.rest;
  }

  #memoryOf(name: string): Memory {
    let known = this.#names.get(name);
    if (known) return known;
    if (this.#names.size >= this.most) this.#forgetOne();
    known = newMemory();
    this.#names.set(name, known);
    return known;
  }

  /**
   * Forgets a name that was not used since the last round. Continues where the last search ended,
   * because the gaps are at the front of the map.
   */
  #forgetOne(): void {
    for (;;) {
      const next = this.#hand.next();
      if (next.done) this.#hand = this.#names.entries();
      else if (next.value[1].isInUse) next.value[1].isInUse = false;
      else {
        this.#names.delete(next.value[0]);
        return;
      }
    }
  }
}

/**
 * How a kept lock's time with its process ended. "recalled": another process wanted it. "wanted":
 * the same, before it was ever idle, which cost no message. "lapsed": no process wanted it while it
 * stayed. "given up": too many were kept, a connection broke, the client closed. "not kept": it was
 * acquired to be kept, and could not be, because its caller had it for too long.
 */
export type KeptEnd = "recalled" | "wanted" | "lapsed" | "given up" | "not kept";

/**
 * What taking a kept lock again saves: a pair of commands, or half of one if it needs a round trip
 * first.
 */
export const TAKEN = 1;
export const ASKED = 0.5;

/** What is known of a name. */
interface Memory {
  /**
   * What it saved, in pairs of commands, on average over the last times that it was kept; and how
   * many times that is.
   */
  saved: number;
  times: number;
  isWorthIt: boolean;
  /** It may be kept once, to see whether that is worth it. */
  isTried: boolean;
  /** How long it rests after the last time that was not worth it, in ms, and until when. */
  rest: number;
  restsUntil: number;
  /** The share of its callers that came right back, 0 to 1, smoothed. Null: unknown. */
  back: number | null;
  /** It was used since a search last spared it. */
  isInUse: boolean;
}

const newMemory = (): Memory => ({
  saved: 0,
  times: 0,
  isWorthIt: false,
  isTried: false,
  rest: 0,
  restsUntil: Number.NEGATIVE_INFINITY,
  back: null,
  isInUse: false,
});

/** The name under which a client remembers whether caching the reads of a lock was worth it. */
export const knownReads = (name: string): string => `rw:${name}`;

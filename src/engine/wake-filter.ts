import { WAKE_REST } from "../defaults.ts";
import type { AttemptAnswer } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";

/**
 * What an acquisition knows of the messages that say "the lock may be free". Protects Redis from
 * tries without end that made-up messages would lead to.
 *
 * Every client that may PUBLISH can say that. When it is true, the lock has changed hands, or its
 * holder is the one that the word names: the try behind it meets another holder, or another end of
 * its TTL. When two tries in a row, each behind a word, meet what the one before has met, then the
 * words of the next WAKE_REST ms lead to one try together. RACE: not when one does. A try can
 * overtake the word of a release, and meets the next holder already; the word comes then, and the
 * try behind it meets that holder again.
 */
export class WakeFilter {
  /** How many messages came. */
  count = 0;
  /** Until then messages lead to one try together, at this time. */
  restsUntil = 0;
  /** For how many of them a try was made, and what the last one said. */
  #heeded = 0;
  #word = "";
  /** The holder that the last try met, and when its TTL ends by the server's clock, in ms. */
  #met: string | undefined;
  #metUntil = 0;
  /** How many words in a row proved to be in vain. */
  #vain = 0;

  get rests(): boolean {
    return this.restsUntil > clocks.mono.now();
  }

  /** A message came. Returns whether it may be tried for now. */
  heard(word: string): boolean {
    this.count++;
    this.#word = word;
    return !this.rests || word === this.#met;
  }

  /** A try is sent. Returns whether a message has led to it. */
  asks(): boolean {
    const isWoken = this.count !== this.#heeded;
    this.#heeded = this.count;
    return isWoken;
  }

  /** A try that was sent then has found the lock held. */
  met(sent: number, isWoken: boolean, { holder, at, ttl }: AttemptAnswer & { is: "held" }): void {
    const until = at === 0 ? 0 : at / 1_000 + ttl;
    const isSame = holder === this.#met && (until === this.#metUntil || Math.abs(until - this.#metUntil) < 2);
    const isVain = isWoken && holder !== undefined && isSame && holder !== this.#word;
    this.#vain = isVain ? this.#vain + 1 : 0;
    this.restsUntil = this.#vain > 1 ? sent + WAKE_REST : 0;
    this.#met = holder;
    this.#metUntil = until;
  }

  /** The lock is ours. */
  owned(): void {
    this.#vain = 0;
    this.restsUntil = 0;
  }
}

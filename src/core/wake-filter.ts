import { WAKE_REST } from "../defaults.ts";
import type { AttemptAnswer } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";

/**
 * What a place knows of the messages "the lock may be free". Protects Redis from endless
 * tries caused by forged messages.
 *
 * Every client that may PUBLISH can send such a message. If it is true, the lock has changed hands,
 * or its holder is the one that the word names: the try after it finds another holder, or another
 * end of its TTL. When two tries in a row, each after a word, find the same as the previous one,
 * all words of the next WAKE_REST ms lead to one try together. RACE: one such try is not enough. A
 * try can overtake the word of a release and find the next holder already; then the word comes, and
 * the try after it finds that holder again.
 */
export class WakeFilter {
  /** How many messages came. */
  count = 0;
  /** Until then messages lead to one try together, at this time. */
  restsUntil = 0;
  /** For how many of them a try was made, and what the last one said. */
  #heeded = 0;
  #word = "";
  /** The holder that the last try found, and when its TTL ends by the server's clock, in ms. */
  #met: string | undefined;
  #metUntil = 0;
  /** How many words in a row were useless. */
  #vain = 0;

  get rests(): boolean {
    return this.restsUntil > clocks.mono.now();
  }

  /** A message came. Returns whether to try for it now. */
  heard(word: string): boolean {
    this.count++;
    this.#word = word;
    return !this.rests || word === this.#met;
  }

  /** A try is sent. Returns whether a message caused it. */
  asks(): boolean {
    const isWoken = this.count !== this.#heeded;
    this.#heeded = this.count;
    return isWoken;
  }

  /** A try sent at `sent` found the lock held. */
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

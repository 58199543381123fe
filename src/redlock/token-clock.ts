/**
 * Which token to propose next: larger than every one that was seen. A client whose clock is behind another's goes by that
 * one from then on, so that its proposals are likely to be the largest at every node. That saves the round trip of
 * `agree`; what is safe does not depend on it.
 */
export class TokenClock {
  /** The largest token that was seen or proposed, its passes included. */
  #last = 0;
  /** So many µs a clock is ahead of ours, that somebody's tokens follow. */
  #ahead = 0;

  propose(passes: number): number {
    const token = Math.max(micros() + this.#ahead, this.#last + 1);
    this.#last = token + passes;
    return token;
  }

  saw(token: number, passes: number): void {
    // What is too large to be a token is no clock to follow: the votes that it stands in are refused.
    if (token <= this.#last || !Number.isSafeInteger(token + passes)) return;
    this.#last = token + passes;
    this.#ahead = Math.max(this.#ahead, token - micros());
  }
}

const micros = (): number => Date.now() * 1_000;

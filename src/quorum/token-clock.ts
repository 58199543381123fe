import { clocks } from "../util/clock.ts";

/**
 * Which token to propose next: larger than every one that was seen. A client whose clock is behind
 * another's follows that one from then on, so that its proposals are likely to be the largest at
 * every node. That saves the round trip of `agree`; safety does not depend on it:
 *
 * **Tokens grow.** Before a caller gets a lease with token T, a majority of nodes has stored T with
 * its local hand-offs, each of them while the hold owned its key: either in the vote itself, when
 * all votes brought the same token, or by `agree`. A later lease has a majority too, so one node Z
 * is in both. Z has the keys of the two holds one after the other. The later one's was not first:
 * it would have ended before the earlier vote at Z, while its own lease had not begun yet. So Z
 * voted for it after it had stored T, and answered more than T and its local hand-offs. Its token
 * is the largest of its votes: if Z's came too late to be counted, and is larger, Z refuses
 * `agree`.
 * Nodes that take a lease later (`KeptQuorumHold`) are no votes, and are in neither majority.
 * Where Z forgot everything in between it was young, and did not vote; later the clocks of the
 * clients decide.
 */
export class TokenClock {
  /** The largest token seen or proposed, with its local hand-offs. */
  #last = 0;
  /** How many µs the clock is ahead of ours by which another client makes its tokens. */
  #ahead = 0;

  propose(passes: number): number {
    const token = Math.max(micros() + this.#ahead, this.#last + 1);
    this.#last = token + passes;
    return token;
  }

  saw(token: number, passes: number): void {
    // Too large to be a genuine token, so do not follow it: nodes refuse what is larger, see
    // acquire.lua.
    if (token <= this.#last || !(token + passes <= TOKEN_MAX)) return;
    this.#last = token + passes;
    this.#ahead = Math.max(this.#ahead, token - micros());
  }
}

/** The year 2255 as a µs clock; acquire.lua has the same number. */
const TOKEN_MAX = 9e15;

/**
 * Whole ones, which the clocks of a test client do not have: a node rounds the token and the end of
 * its reserve each by itself, so the reserve could lack one.
 */
const micros = (): number => Math.floor(clocks.wall.now() * 1_000);

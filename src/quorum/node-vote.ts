import { NotAskedError, type QuorumNode } from "./node.ts";
import type { Vote } from "./node-commands.ts";

/**
 * One hold at one node: may it be there? Protects the next holder from remains of this hold: a node
 * that may have it receives its end after any command that could still bring it there (R3 for each
 * node separately).
 */
export class NodeVote {
  /**
   * Does the node count for the lease? See `QuorumHold`, which changes it, and counts the changes.
   */
  is: "counts" | "missing" | "late" = "counts";
  change = 0;
  /** Its last answer is missing: its vote is pending, or it did not answer the last renewal. */
  isUnheard = true;
  /** Its answer when it was asked to take the hold; null: none. */
  vote: Vote | null = null;
  /**
   * The node may have received the hold, and has not said since then that the hold is not there.
   */
  mayHave = false;
  #taking: Promise<unknown> | null = null;
  /** Commands about the hold that are neither answered nor given up. */
  readonly #pending = new Set<Promise<unknown>>();

  constructor(readonly node: QuorumNode) {}

  /** It was asked to take the hold, and that command is neither answered nor given up. */
  get isOut(): boolean {
    return this.#taking !== null;
  }

  /**
   * The node was asked to take the hold: for its vote, or for a lease that others have granted.
   * Always calls `heard`.
   */
  take(asked: Promise<Vote>, heard: (vote: Vote | null) => void): Promise<Vote> {
    this.mayHave = true;
    const done = (vote: Vote | null, isNowhere: boolean): void => {
      if (isNowhere) this.mayHave = false;
      this.#taking = null;
      this.vote = vote;
      heard(vote);
    };
    this.#taking = asked.then(
      (vote) => done(vote, vote.is === "held"),
      // Otherwise a node that refuses to say which server it is would be asked, for a whole lease,
      // to withdraw a hold that it never received.
      (error: unknown) => done(null, error instanceof NotAskedError),
    );
    return this.#track(this.#taking.then(() => asked));
  }

  /**
   * Sends a further command about the hold to the node, which may not know it. `isGone`: does this
   * answer say that the hold is not there?
   *
   * RACE: a majority may grant the lock, and it may be released, before the last node's vote comes.
   * Then this command can overtake the acquire, which waits for the node's introduction, or is sent
   * once more because the script was not known. So it withdraws only what was voted on before it
   * was sent; `erase` sends another one after the vote.
   */
  async follow<A>(command: Promise<A>, isGone: (answer: A) => boolean): Promise<A> {
    if (!this.mayHave) return command;
    const overtakes = this.isOut;
    const answer = await this.#track(command);
    if (!overtakes && isGone(answer)) this.mayHave = false;
    return answer;
  }

  /** Has the node withdraw the hold, if it may have it. */
  async erase(release: () => Promise<unknown>): Promise<void> {
    // A late vote may be a no; a release may still be answered.
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    // Every command is answered, or was given up on an earlier connection: withdraw a late yes.
    if (this.mayHave) await this.follow(release(), () => true);
  }

  /**
   * Await it before judging the node's answer that it has, or had, the hold.
   *
   * RACE: its late vote and that answer come in one packet. The vote is read first, but does not
   * arrive here first.
   */
  async heard(): Promise<void> {
    await this.#taking;
  }

  #track<A>(command: Promise<A>): Promise<A> {
    this.#pending.add(command);
    const done = (): void => void this.#pending.delete(command);
    command.then(done, done);
    return command;
  }
}

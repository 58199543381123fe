import { NotAskedError, type QuorumNode } from "./node.ts";
import type { Vote } from "./node-commands.ts";

/**
 * One hold at one node: may it be there? Protects the next holder from what is left of this one: a
 * node that may have the hold is told of its end, behind whatever could still bring it there (R3
 * for each node by itself).
 */
export class NodeVote {
  /** Is it a node of the lease? See `QuorumHold`, which changes it, and counts the changes. */
  is: "counts" | "missing" | "late" = "counts";
  change = 0;
  /** Its last word did not come: its vote is out, or it did not answer the last renewal. */
  isUnheard = true;
  /** What it said when it was asked to take the hold; null: nothing. */
  vote: Vote | null = null;
  /** The node was told of the hold, and has not said since then that the hold is not there. */
  mayHave = false;
  #taking: Promise<unknown> | null = null;
  /** Commands about the hold that are neither answered nor given up. */
  readonly #pending = new Set<Promise<unknown>>();

  constructor(readonly node: QuorumNode) {}

  /** It was asked to take the hold, and that is neither answered nor given up. */
  get isOut(): boolean {
    return this.#taking !== null;
  }

  /**
   * The node was asked to take the hold: for its vote, or for a lease that others have granted.
   * Calls `heard` in any case.
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
      // Else a node that refuses to say which server it is would be asked, for a whole lease, to
      // take back what it has never heard of.
      (error: unknown) => done(null, error instanceof NotAskedError),
    );
    return this.#track(this.#taking.then(() => asked));
  }

  /**
   * A further command about the hold goes to the node, which may not have heard of it. `isGone`:
   * does this answer say that the hold is not there?
   *
   * RACE: a majority has granted the lock and it is released, before the last node's vote is there.
   * Then this command can overtake the acquire, which waits for the node's introduction, or is sent
   * once more because the script was not known. So it takes back only what was voted on before it
   * was sent; `erase` sends another one behind the vote.
   */
  async follow<A>(command: Promise<A>, isGone: (answer: A) => boolean): Promise<A> {
    if (!this.mayHave) return command;
    const overtakes = this.isOut;
    const answer = await this.#track(command);
    if (!overtakes && isGone(answer)) this.mayHave = false;
    return answer;
  }

  /** Has the node take the hold back, if it may have it. */
  async erase(release: () => Promise<unknown>): Promise<void> {
    // A vote that comes late may be a no; a release may be answered yet.
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    // All of it is answered, or was given up and lies on the connection before this one: a late yes
    // is taken back.
    if (this.mayHave) await this.follow(release(), () => true);
  }

  /**
   * To be waited for before the node's word that it has, or had, the hold is judged.
   *
   * RACE: its late vote and that word come in one packet. The vote is the first to be read, and not
   * the first to get here.
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

import { type NodeState, NotAskedError, type QuorumNode } from "./node.ts";
import type { Vote } from "./node-commands.ts";

/**
 * One hold at one node: may it be there? Protects the next holder from what is left of this one: a node that may have the
 * hold is told of its end, behind whatever could still bring it there (R3 for each node by itself).
 */
export class Standing {
  readonly node: QuorumNode;
  /** Is it a node of the lease? See `Footprint`, which changes it, and counts the changes. */
  is: "counts" | "missing" | "late" = "counts";
  change = 0;
  /** It voted for the hold before the votes were decided. */
  isVoter = false;
  /** Its last word did not come: its vote is out, or it did not answer the last renewal. */
  isUnheard = true;
  /** What it said when it was asked to take the hold; null: nothing. */
  vote: Vote | null = null;
  /** Of its node when that was looked at last, and whether a node in this state is asked without need. */
  state: NodeState = "unknown";
  isLive = true;
  /** The node was told of the hold, and has not said since then that the hold is not there. */
  mayHave = false;
  #taking: Promise<unknown> | null = null;
  /** Commands about the hold that are neither answered nor given up, and what waits until there are none. */
  #pending = 0;
  readonly #whenIdle: (() => void)[] = [];

  constructor(node: QuorumNode) {
    this.node = node;
  }

  /** Reads the state of its node, once for each command. `isVote`: for a vote a young one is not asked. */
  look(isVote: boolean): boolean {
    this.state = this.node.state;
    this.isLive = this.state === "voting" || this.state === "unknown" || (this.state === "young" && !isVote);
    return this.isLive;
  }

  /** It was asked to take the hold, and that is neither answered nor given up. */
  get isOut(): boolean {
    return this.#taking !== null;
  }

  /** The node was asked to take the hold: for its vote, or for a lease that others have granted. Calls `heard` in any case. */
  take(asked: Promise<Vote>, heard: (vote: Vote | null) => void): Promise<Vote> {
    this.mayHave = true;
    this.#pending++;
    const done = (vote: Vote | null, isNowhere: boolean): void => {
      if (isNowhere) this.mayHave = false;
      this.#taking = null;
      this.vote = vote;
      this.#answered();
      heard(vote);
    };
    const taking = asked.then(
      (vote) => {
        done(vote, vote.is === "held");
        return vote;
      },
      (error: unknown) => {
        // Else a node that refuses to say which server it is would be asked, for a whole lease, to take back what it has never heard of.
        done(null, error instanceof NotAskedError);
        throw error;
      },
    );
    this.#taking = taking;
    return taking;
  }

  /**
   * A further command about the hold goes to the node, which may not have heard of it. `isGone`: does this answer say that
   * the hold is not there?
   *
   * RACE: a majority has granted the lock and it is released, before the last node's vote is there. Then this command can
   * overtake the acquire, which waits for the node's introduction, or is sent once more because the script was not known.
   * So it takes back only what was voted on before it was sent; `erase` sends another one behind the vote.
   */
  follow<A>(command: Promise<A>, isGone: (answer: A) => boolean): Promise<A> {
    if (!this.mayHave) return command;
    const overtakes = this.isOut;
    this.#pending++;
    return command.then(
      (answer) => {
        if (!overtakes && isGone(answer)) this.mayHave = false;
        this.#answered();
        return answer;
      },
      (error: unknown) => {
        this.#answered();
        throw error;
      },
    );
  }

  /** Has the node take the hold back, if it may have it. */
  async erase(release: () => Promise<unknown>): Promise<void> {
    // A vote that comes late may be a no; a release may be answered yet.
    if (this.#pending > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
    // All of it is answered, or was given up and lies on the connection before this one: a late yes is taken back.
    if (this.mayHave) await this.follow(release(), () => true);
  }

  /**
   * To be waited for before the node's word that it has, or had, the hold is judged.
   *
   * RACE: its late vote and that word come in one packet. The vote is the first to be read, and not the first to get here.
   */
  async heard(): Promise<void> {
    await this.#taking?.catch(() => {});
  }

  #answered(): void {
    this.#pending--;
    if (this.#pending === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}

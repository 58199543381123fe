import type { Link } from "../redis/driver.ts";
import type { QuorumKeys } from "../redis/keys.ts";
import { clocks } from "../util/clock.ts";
import {
  type Agreement,
  NodeCommands,
  type NodeHold,
  type NodeSettings,
  type Vote,
  type Wish,
} from "./node-commands.ts";

/**
 * Which server answers at which node of a quorum, by run id: two connections to one server would
 * give it two votes.
 */
export type Registry = Map<string, QuorumNode>;

/**
 * A process of the server. It has been this node at least since `upSince`, on our monotonic clock.
 */
interface Process {
  readonly runId: string;
  readonly upSince: number;
}

/** See `QuorumNode`. */
export type NodeState = "away" | "twin" | "silent" | "unknown" | "young" | "voting";

/** Is a node in this state asked even if the others suffice? Not a young one for a vote. */
export const isLive = (state: NodeState, isVote: boolean): boolean =>
  state === "voting" || state === "unknown" || (state === "young" && !isVote);

/**
 * INFO gives the uptime as the difference of two clocks cut to whole seconds: it can be 1 s too
 * small.
 */
const UPTIME_GRAIN = 1_000;

/** This node's vote does not count now, so it was not asked, and does not know the hold. */
export class NotAskedError extends Error {}

/**
 * One master of a quorum: is it asked now, and does its vote count? Protects the majority from
 * votes of a process that may have forgotten a lock that is held, and from a server that would vote
 * twice.
 *
 * | state | true | what is sent |
 * |---|---|---|
 * | away | its connection is lost | nothing: it would run when no caller wants it any more |
 * | twin | it is the same server as another node | only the question which process it is |
 * | silent | nothing was answered for longer than `nodeTimeout`; it is also one of the next three | one probe at a time; everything, if the others cannot decide |
 * | unknown | it has not said on this connection which process it is; perhaps it was never connected | that question, and then the vote |
 * | young | its process may have been up for less than `restartDelay` | all but votes and leases: it may have forgotten a lock that is held |
 * | voting | its process has been up for longer than any lease | all |
 *
 * A vote counts only on the connection that it was sent on, which is the one on which the process
 * was found old. Drivers resend commands over a new connection, which may lead to a process that
 * has just started empty.
 */
export class QuorumNode extends NodeCommands {
  readonly #registry: Registry;
  /** The process on this connection, and the one that introduced itself last. */
  #process: Process | null = null;
  #last: Process | null = null;
  /** The number of the node that is the same server, if it has said so on this connection. */
  #twin: number | null = null;
  #introducing: Promise<void> | null = null;
  #keys: QuorumKeys | null = null;

  /** The connection is back. */
  onReconnect: () => void = () => {};
  /** It has said on this connection that it is the same server as the node with this number. */
  onTwin: (other: number) => void = () => {};

  constructor(number: number, link: Link, settings: NodeSettings, registry: Registry) {
    super(number, link, settings);
    this.#registry = registry;
    this.commands.onLost = () => this.#lost();
    this.commands.onReconnect = () => {
      // Ask at once, so that the next vote need not wait for it.
      if (this.#last && this.#keys) this.#probe(this.#keys);
      this.onReconnect();
    };
  }

  get state(): NodeState {
    if (this.commands.ended || this.commands.isAway) return "away";
    if (this.#twin !== null) return "twin";
    if (this.silence > this.settings.nodeTimeout) return "silent";
    if (this.#process === null) return "unknown";
    return this.quarantine > 0 ? "young" : "voting";
  }

  /** How many ms until it may vote. */
  get quarantine(): number {
    const { restartDelay } = this.settings;
    if (this.#process === null || restartDelay === 0) return 0;
    return Math.max(0, this.#process.upSince + restartDelay - clocks.mono.now());
  }

  /**
   * Why it is not asked in this state. If asking can change that, this asks which process it is.
   */
  refusal(state: NodeState, keys: QuorumKeys): Error {
    if (state === "away" && this.commands.ended)
      return this.error("its connection was closed for good (status 'end')");
    if (state === "away") return this.trouble();
    if (state === "young") return this.#isYoung();
    const ms = Math.round(this.silence);
    // Commands wait in its socket: one is enough to learn that it is back, or that its address now
    // leads to another server than its twin.
    this.#probe(keys);
    if (state === "twin") return this.#isTwin();
    return this.error(
      state === "silent" ? `it has answered nothing for ${ms} ms` : "it has not said yet which process it is",
    );
  }

  /** Its vote, in this state. Rejects when no vote counts; the hold may be there all the same. */
  async vote(state: NodeState, hold: NodeHold, wish: Wish): Promise<Vote> {
    this.#keys = hold.keys;
    if (state !== "voting") {
      try {
        if (this.#process === null) await this.#introduce(hold.keys);
        this.#assertOld();
      } catch (error) {
        const { message, cause } = error as Error;
        throw new NotAskedError(message, { cause });
      }
    }
    const vote = await this.acquire(hold, wish);
    // Past its notAfter, by the earlier knowledge of this node's clock, which is more precise now.
    return vote.is === "stale" ? this.acquire(hold, wish) : vote;
  }

  /**
   * As good as a vote, and under the same conditions: a process that has lost a vote must not
   * confirm its token.
   */
  override async agree(hold: NodeHold, token: number, last: number): Promise<Agreement> {
    this.#assertOld();
    return super.agree(hold, token, last);
  }

  #probe(keys: QuorumKeys): void {
    this.#introduce(keys).catch(() => {});
  }

  /** Also rejects when it is the same server as another node. */
  #introduce(keys: QuorumKeys): Promise<void> {
    this.#introducing ??= this.askIdentity(keys)
      .then(({ runId, uptime }) => {
        const before = this.#twin;
        this.#introduced(runId, uptime);
        if (this.#twin === null) return;
        if (before === null) this.onTwin(this.#twin);
        throw this.#isTwin();
      })
      .finally(() => {
        this.#introducing = null;
      });
    return this.#introducing;
  }

  /** `uptime` in s. */
  #introduced(runId: string, uptime: number): void {
    const now = clocks.mono.now();
    const known = this.#registry.get(runId);
    // Two nodes may swap addresses: a process belongs to the node at which it answers now.
    this.#twin = known && known !== this && known.#process ? known.number : null;
    if (this.#twin !== null) return;
    // RACE: the process was this node, then another one, and comes back. If a node says that it is
    // still that other one, it is its twin: so record the process here again. It may not know what
    // was voted on here meanwhile, so it counts as new.
    if (known === this) {
      // The known process stays: changes of its clock meanwhile do not matter.
      this.#process = this.#last;
      return;
    }
    if (this.#last && this.#registry.get(this.#last.runId) === this) this.#registry.delete(this.#last.runId);
    this.#registry.set(runId, this);
    // RACE: another process answers here than before. Its uptime says nothing: the server's wall
    // clock may have been stepped forward, or the address may now lead to an older process that
    // does not know what was voted on here. When that changed is unknown, because we may have been
    // silent for long. So it counts as new from now on.
    const isNew = this.#last !== null || known !== undefined;
    this.#process = { runId, upSince: isNew ? now : now - uptime * 1_000 + UPTIME_GRAIN };
    this.#last = this.#process;
  }

  #lost(): void {
    this.#process = null;
    this.#twin = null;
    this.askedSince = null;
  }

  #assertOld(): void {
    if (this.#process === null) throw this.error("its connection was lost again");
    if (this.quarantine > 0) throw this.#isYoung();
  }

  #isYoung(): Error {
    const left = this.quarantine;
    const ago = Math.max(0, this.settings.restartDelay - left);
    const [since, until] = [ago, left].map((ms) => Math.ceil(ms / 1_000));
    return new Error(`node ${this.number} restarted ${since} s ago and votes again in ${until} s`);
  }

  #isTwin(): Error {
    return this.error(`it is the same server as node ${this.#twin}`);
  }
}

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
 * Which server answers at which node of a quorum: two connections to one server would be two votes
 * of one. By run id.
 */
export type Registry = Map<string, QuorumNode>;

/** A process of the server. It has been this node since `upSince` at the latest, on our monotonic clock. */
interface Process {
  readonly runId: string;
  readonly upSince: number;
}

/** See `QuorumNode`. */
export type NodeState = "away" | "twin" | "silent" | "unknown" | "young" | "voting";

/** Is a node in this state asked without need? For a vote a young one is not. */
export const isLive = (state: NodeState, isVote: boolean): boolean =>
  state === "voting" || state === "unknown" || (state === "young" && !isVote);

/**
 * INFO tells the uptime as the difference of two clocks that are cut to whole seconds: it can be
 * 1 s less.
 */
const UPTIME_GRAIN = 1_000;

/** No vote of this node's counts now, so none was asked for: it has not heard of the hold. */
export class NotAskedError extends Error {}

/**
 * One master of a quorum: is it asked now, and does its vote count? Protects the majority from
 * votes of a process that may have forgotten a lock that is held, and from a server that would vote
 * twice.
 *
 * | state | true | what is sent |
 * |---|---|---|
 * | away | its connection is lost | nothing: it would be executed when nobody wants it any more |
 * | twin | it is the same server as another node | only the question which process it is |
 * | silent | nothing was answered for longer than `nodeTimeout`; it is also one of the next three | one probe at a time; all, where the others cannot decide |
 * | unknown | it has not said on this connection which process it is; perhaps it was never connected | that question, and then the vote |
 * | young | its process may have been up for less than `restartDelay` | all but votes and leases: it may have forgotten a lock that is held |
 * | voting | its process has been up for longer than any lease | all |
 *
 * A vote counts only on the connection that it was sent on, which is the one on which the process
 * was found old. A library sends commands again over a new connection, and behind that may be a
 * process that started empty a moment ago.
 */
export class QuorumNode extends NodeCommands {
  readonly #registry: Registry;
  /** The process on this connection, and the one that introduced itself last. */
  #process: Process | null = null;
  #last: Process | null = null;
  /** The number of the node that is the same server, as far as it has said on this connection. */
  #twin: number | null = null;
  #introducing: Promise<void> | null = null;
  #keys: QuorumKeys | null = null;

  /** The connection is there again. */
  onReconnect: () => void = () => {};
  /** It has said on this connection that it is the same server as the node with this number. */
  onTwin: (other: number) => void = () => {};

  constructor(number: number, link: Link, settings: NodeSettings, registry: Registry) {
    super(number, link, settings);
    this.#registry = registry;
    this.commands.onLost = () => this.#lost();
    this.commands.onReconnect = () => {
      // At once, so that the next vote need not wait for it.
      if (this.#last && this.#keys) this.#probe(this.#keys);
      this.onReconnect();
    };
  }

  detach(): void {
    this.commands.detach();
  }

  get state(): NodeState {
    if (this.commands.ended || this.commands.isAway) return "away";
    if (this.#twin !== null) return "twin";
    if (this.silence > this.settings.nodeTimeout) return "silent";
    if (this.#process === null) return "unknown";
    return this.quarantine > 0 ? "young" : "voting";
  }

  /** For how many ms it does not vote yet. */
  get quarantine(): number {
    const { restartDelay } = this.settings;
    if (this.#process === null || restartDelay === 0) return 0;
    return Math.max(0, this.#process.upSince + restartDelay - clocks.mono.now());
  }

  /** Why it is not asked in this state. Where asking can change that, it is asked which process it is. */
  refusal(state: NodeState, keys: QuorumKeys): Error {
    if (state === "away" && this.commands.ended)
      return this.error("its connection was closed for good (status 'end')");
    if (state === "away") return this.trouble();
    if (state === "young") return this.#isYoung();
    const ms = Math.round(this.silence);
    // Whatever is sent waits in its socket: one command is enough to hear that it is back, or that
    // a twin went elsewhere.
    this.#probe(keys);
    if (state === "twin") return this.#isTwin();
    return this.error(
      state === "silent" ? `it has answered nothing for ${ms} ms` : "it has not said yet which process it is",
    );
  }

  /** In this state. Rejects when there is no vote that counts; then the hold may be there all the same. */
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
    // Older than its notAfter, by what was known of this node's clock: now its clock is known.
    return vote.is === "stale" ? this.acquire(hold, wish) : vote;
  }

  /**
   * As good as a vote, and under the same conditions: a process that has forgotten a vote must not
   * stand for its token.
   */
  override async agree(hold: NodeHold, token: number, last: number): Promise<Agreement> {
    this.#assertOld();
    return super.agree(hold, token, last);
  }

  #probe(keys: QuorumKeys): void {
    this.#introduce(keys).catch(() => {});
  }

  /** Rejects also where it is the same server as another node. */
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
    // Two nodes may change their addresses: a process is that of the node which it answers as now.
    this.#twin = known && known !== this && known.#process ? known.number : null;
    if (this.#twin !== null) return;
    // RACE: it was this node, then another one, and comes back. A node that says that it is still
    // that other one is its twin: so it must be recorded here again. And what was voted on here
    // meanwhile it may never have heard of: it is new.
    if (known === this) {
      // What its clock has done meanwhile changes nothing.
      this.#process = this.#last;
      return;
    }
    if (this.#last && this.#registry.get(this.#last.runId) === this) this.#registry.delete(this.#last.runId);
    this.#registry.set(runId, this);
    // RACE: another process answers here than before. How long it has been up says nothing: the
    // server's wall clock may have been stepped forward, or the address may be that of an older
    // process, which has never heard of what was voted on here. When that changed nobody knows: we
    // may have been silent for long. So it is new from now on.
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

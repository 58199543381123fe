import type { ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import { ScriptRunner } from "../redis/script-runner.ts";
import type { RedisLike } from "../redis/types.ts";
import { Identity, type Registry } from "./node-identity.ts";
import { type Agreement, type Holding, QuorumScripts, type Vote } from "./node-scripts.ts";

interface NodeSettings {
  readonly replyTimeout: number;
  readonly nodeTimeout: number;
  readonly restartDelay: number;
}

/** No vote of this node's counts now, so none was asked for: it has not heard of the hold. */
export class NotAskedError extends Error {}

/**
 * One master of a quorum: what is sent to it, and whether its votes count.
 *
 * | state | true | its vote |
 * |---|---|---|
 * | new | was never connected | waits for the connection |
 * | away | the connection is lost | none, and nothing is sent: it would be executed when nobody wants it any more |
 * | silent | nothing was answered for longer than `nodeTimeout` | none while the others suffice; one probe at a time |
 * | twin | it is the same server as another node | none, and nothing is sent |
 * | live | connected | after it has said on this connection which process it is: see `Identity` |
 *
 * A vote counts only on the connection that it was sent on, which is the one on which the process was found old. ioredis
 * sends commands again over a new connection, and behind that may be a process that started empty a moment ago.
 */
export class QuorumNode {
  /** Counted from 1, as people do. */
  readonly number: number;
  readonly redis: RedisLike;
  readonly commands: ScriptRunner;
  readonly #scripts: QuorumScripts;
  readonly #settings: NodeSettings;
  readonly #identity: Identity;
  /** What is waited for on this connection, to be given up with it. */
  readonly #bound = new Set<(error: Error) => void>();
  #introducing: Promise<void> | null = null;
  /** Since when nothing has been answered that was asked for. */
  #askedSince: number | null = null;
  #name = "";

  /** The connection is there again. */
  onReconnect: () => void = () => {};
  /** It has said on this connection that it is the same server as the node with this number. */
  onTwin: (other: number) => void = () => {};

  constructor(number: number, redis: RedisLike, settings: NodeSettings, registry: Registry) {
    this.number = number;
    this.redis = redis;
    this.#settings = settings;
    this.#identity = new Identity(number, settings.restartDelay, registry);
    this.commands = new ScriptRunner(redis, settings.replyTimeout);
    this.#scripts = new QuorumScripts(this.commands);
    redis.on("close", this.#closed);
    this.commands.onReconnect = () => {
      // At once, so that the next vote need not wait for it.
      if (this.#identity.wasKnown) this.#introduce(this.#name).catch(() => {});
      this.onReconnect();
    };
  }

  detach(): void {
    this.redis.off("close", this.#closed);
    this.commands.detach();
  }

  /** Could it answer now? */
  get isLive(): boolean {
    return !this.commands.ended && !this.commands.isAway && this.#identity.twin === null && !this.#isSilent;
  }

  /** Why nothing is sent to it; null: something is. `isNeeded`: the others are too few without it. */
  absence(name: string, isNeeded: boolean): Error | null {
    if (this.commands.ended) return this.#error("its connection was closed for good (status 'end')");
    if (this.commands.isAway) return this.trouble();
    if (this.#identity.twin !== null) {
      // What it said would be said twice. The other one may have gone elsewhere, which asking again tells.
      this.#introduce(name).catch(() => {});
      return this.#isTwin();
    }
    if (!this.#isSilent || isNeeded) return null;
    // Whatever is sent waits in its socket. One command is enough to hear that it is back.
    this.#introduce(name).catch(() => {});
    return this.#error(`it has answered nothing for ${Math.round(this.#silence)} ms`);
  }

  /** Its connection is lost. */
  trouble(): Error {
    const { whereabouts, lastError } = this.commands;
    return this.#error(`its connection is lost (${whereabouts})`, lastError);
  }

  /** Rejects when there is none that counts; then the hold may be there all the same. */
  async vote(
    name: string,
    hold: string,
    wish: { lease: number; token: number; passes: number },
  ): Promise<Vote> {
    this.#name = name;
    try {
      if (!this.#identity.isKnown) await this.#introduce(name);
      this.#assertOld();
    } catch (error) {
      throw error instanceof Error ? new NotAskedError(error.message, { cause: error.cause }) : error;
    }
    const timeout = Math.min(this.#settings.nodeTimeout, wish.lease);
    const send = () => this.#onThisConnection(this.#scripts.acquire(name, hold, wish, timeout));
    const vote = await send();
    // Older than its notAfter, by what was known of this node's clock: now its clock is known.
    return vote.is === "stale" ? send() : vote;
  }

  /** Why it is asked for no hold now that a majority has granted; null: it may be. */
  unfit(name: string): Error | null {
    const absence = this.absence(name, false);
    if (absence) return absence;
    if (this.#identity.isKnown) return this.youth;
    this.#introduce(name).catch(() => {});
    return this.#error("it has not said yet which process it is");
  }

  /**
   * Takes a hold that a majority has granted: a vote under the same conditions, so it must not be `unfit`. Sent before this
   * returns, so that nothing is sent when the hold may have ended.
   */
  join(name: string, hold: string, grant: { ttl: number; token: number; last: number }): Promise<Vote> {
    const timeout = Math.min(this.#settings.nodeTimeout, grant.ttl);
    return this.#onThisConnection(this.#scripts.join(name, hold, grant, timeout));
  }

  /** As good as a vote, and under the same conditions: a process that has forgotten a vote must not stand for its token. */
  async agree(name: string, hold: string, token: number, passes: number): Promise<Agreement> {
    this.#assertOld();
    const { nodeTimeout } = this.#settings;
    return this.#onThisConnection(this.#scripts.agree(name, hold, token, passes, nodeTimeout));
  }

  /** Also of a young process, or after a resend: that it has the key, and for how long, is true whenever it is said. */
  renew(name: string, hold: string, ttl: number, timeout: number): Promise<RenewAnswer> {
    return this.#heard(this.#scripts.renew(name, hold, ttl, timeout));
  }

  /** `wakes`: tells waiters. `last`: the last token of the hold, passes included; 0: it has none. */
  async release(name: string, hold: string, wakes: boolean, last: number): Promise<ReleaseAnswer> {
    const { epoch } = this.commands;
    const answer = await this.#heard(this.#scripts.release(name, hold, wakes, last));
    // A copy of our own command was here, and the connection broke before its reply came: only that one can have told
    // this node the last token of the hold, unless it had voted.
    const isOwnCopy =
      answer.is === "gone" && this.commands.epoch !== epoch && last > 0 && answer.clock >= last;
    return isOwnCopy ? { ...answer, is: "released" } : answer;
  }

  inspect(name: string): Promise<Holding> {
    return this.#heard(this.#scripts.inspect(name));
  }

  // ---- which process is it?

  #introduce(name: string): Promise<void> {
    this.#introducing ??= this.#askWho(name).finally(() => {
      this.#introducing = null;
    });
    return this.#introducing;
  }

  async #askWho(name: string): Promise<void> {
    const { nodeTimeout, replyTimeout } = this.#settings;
    const { uptime, runId } = await this.#onThisConnection(
      this.#scripts.introduce(name, this.redis.status === "ready" ? nodeTimeout : replyTimeout),
    );
    const before = this.#identity.twin;
    this.#identity.introduced(runId, uptime);
    const { twin } = this.#identity;
    if (twin === null) return;
    if (before === null) this.onTwin(twin);
    throw this.#isTwin();
  }

  /** Why it does not vote although it answers; null: it votes, or has not said yet which process it is. */
  get youth(): Error | null {
    return this.#identity.youth;
  }

  #isTwin(): Error {
    return this.#error(`it is the same server as node ${this.#identity.twin}`);
  }

  #assertOld(): void {
    if (!this.#identity.isKnown) throw this.#error("its connection was lost again");
    const { youth } = this;
    if (youth) throw youth;
  }

  // ---- what is heard

  get #silence(): number {
    return this.#askedSince === null ? 0 : performance.now() - this.#askedSince;
  }

  get #isSilent(): boolean {
    return this.#silence > this.#settings.nodeTimeout;
  }

  /** The node's errors say which node. Any answer of its server, a refusal too, ends a silence. */
  #heard<T>(answer: Promise<T>): Promise<T> {
    this.#askedSince ??= performance.now();
    return answer.then(
      (value) => {
        this.#answered();
        return value;
      },
      (error: unknown) => {
        if (error instanceof Error && error.name === "ReplyError") this.#answered();
        throw this.#error(error instanceof Error ? error.message : String(error), error);
      },
    );
  }

  #answered(): void {
    this.#askedSince = null;
  }

  /** Rejects as soon as the present connection is lost: what comes after that may be another process's word. */
  #onThisConnection<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#bound.add(reject);
      this.#heard(answer)
        .then(resolve, reject)
        .finally(() => this.#bound.delete(reject));
    });
  }

  readonly #closed = (): void => {
    this.#identity.lost();
    this.#askedSince = null;
    for (const reject of this.#bound) reject(this.trouble());
    this.#bound.clear();
  };

  #error(what: string, cause?: unknown): Error {
    return new Error(`node ${this.number}: ${what}`, cause === undefined ? undefined : { cause });
  }
}

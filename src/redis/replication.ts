import pTimeout from "p-timeout";
import { NotReplicatedError } from "../api/errors.ts";
import type { ClusterLike, RedisLike, SubscriberLike } from "../api/redis.ts";
import { clocks } from "../util/clock.ts";
import { detached } from "../util/detached.ts";
import { duration } from "../util/duration.ts";
import { customTimers } from "../util/real-timers.ts";
import { slotOf } from "../util/slots.ts";
import { decodeRenewal, type RenewAnswer } from "./replies.ts";
import type { Script } from "./script.ts";
import { ScriptRunner } from "./script-runner.ts";
import { isCluster, NO_NODE, neverKeepAlive, ownerOf } from "./types.ts";

interface Job {
  readonly name: string;
  readonly key: string;
  readonly script: Script;
  readonly args: readonly (string | number)[];
  readonly timeout: number;
  resolve(answer: RenewAnswer): void;
  reject(error: unknown): void;
}

/**
 * Waits until so many replicas have a hold: a write to it, then WAIT on the same connection. That
 * connection is one of its own, because WAIT keeps it busy; in Cluster there is one for each
 * primary in use.
 */
export class Replication {
  readonly #redis: RedisLike | ClusterLike;
  readonly #keyPrefix: string;
  readonly #wanted: number;
  readonly #timeout: number;
  readonly #replyTimeout: number;
  readonly #links = new Map<string, Link>();
  #closed = false;

  constructor(redis: RedisLike | ClusterLike, replicas: number, timeout: number, replyTimeout: number) {
    this.#redis = redis;
    this.#keyPrefix = redis.options.keyPrefix ?? "";
    this.#wanted = replicas;
    this.#timeout = timeout;
    this.#replyTimeout = replyTimeout;
  }

  /**
   * Runs a script that writes to a key, and resolves with its answer when enough replicas have the
   * write. The script has `timeout` ms for its answer.
   *
   * @throws NotReplicatedError when fewer have it in time; the connection's or the server's error.
   */
  confirm(
    name: string,
    key: string,
    script: Script,
    args: readonly (string | number)[],
    timeout: number,
  ): Promise<RenewAnswer> {
    return new Promise((resolve, reject) => this.#add({ name, key, script, args, timeout, resolve, reject }));
  }

  #add(job: Job): void {
    try {
      this.#link(job.key).add(job);
    } catch (error) {
      job.reject(error);
    }
  }

  close(): void {
    this.#closed = true;
    for (const link of this.#links.values()) link.close();
  }

  #link(key: string): Link {
    if (this.#closed) throw new Error("the lock client is closed");
    const owner = isCluster(this.#redis)
      ? ownerOf(this.#redis, slotOf(this.#keyPrefix + key))
      : { address: "", node: this.#redis };
    if (!owner) throw new Error(NO_NODE);
    let link = this.#links.get(owner.address);
    if (!link || link.ended) {
      const options = { ...OVERRIDES, keyPrefix: this.#keyPrefix };
      const connection = detached(() => owner.node.duplicate(options));
      link = new Link(connection, this.#wanted, this.#timeout, this.#replyTimeout, (job) => this.#add(job));
      this.#links.set(owner.address, link);
    }
    return link;
  }
}

/**
 * A command that is sent again on another connection would make WAIT lie: whatever is not answered
 * fails at once. It does not come back for nobody: a node that is gone would be called for ever.
 */
const OVERRIDES = {
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  autoResendUnfulfilledCommands: false,
  lazyConnect: false,
  readOnly: false,
  commandTimeout: undefined,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
};

/** What the script says is true when it is read; WAIT may take longer than a grant lasts. */
const decodeConfirmed = (reply: unknown): RenewAnswer => ({
  ...decodeRenewal(reply),
  read: { mono: clocks.mono.now(), wall: clocks.wall.now() },
});

/** How long the answer to a WAIT may take beyond the time that it waits, in ms. */
const WAIT_REPLY = 1_000;

/**
 * One connection for WAIT. What comes while it waits is written together afterwards: one WAIT
 * proves all of it.
 */
class Link {
  readonly #connection: SubscriberLike;
  readonly #commands: ScriptRunner;
  readonly #wanted: number;
  readonly #timeout: number;
  readonly #handOn: (job: Job) => void;
  #jobs: Job[] = [];
  #busy = false;
  #isClosed = false;

  /** `handOn`: takes what came while a batch was under way in which this connection failed. */
  constructor(
    connection: SubscriberLike,
    wanted: number,
    timeout: number,
    replyTimeout: number,
    handOn: (job: Job) => void,
  ) {
    this.#connection = connection;
    this.#handOn = handOn;
    this.#commands = new ScriptRunner(connection, replyTimeout);
    this.#wanted = wanted;
    this.#timeout = timeout;
    connection.on("error", () => {});
    neverKeepAlive(connection);
  }

  get ended(): boolean {
    return this.#isClosed || this.#connection.status === "end";
  }

  add(job: Job): void {
    this.#jobs.push(job);
    if (!this.#busy) void this.#work();
  }

  close(): void {
    this.#isClosed = true;
    this.#commands.detach();
    this.#connection.disconnect();
  }

  async #work(): Promise<void> {
    this.#busy = true;
    while (this.#jobs.length > 0 && !this.ended) await this.#batch(this.#jobs.splice(0));
    this.#busy = false;
    // RACE: on a connection that is being closed they would be flushed, and refuse callers that did
    // nothing wrong.
    for (const job of this.#jobs.splice(0)) this.#handOn(job);
  }

  async #batch(jobs: readonly Job[]): Promise<void> {
    const { epoch } = this.#commands;
    const answers = await Promise.allSettled(
      jobs.map(({ key, script, args, timeout }) =>
        this.#commands.run(script, [key], args, decodeConfirmed, timeout),
      ),
    );
    const isRenewed = (answer: (typeof answers)[number]): boolean =>
      answer.status === "fulfilled" && answer.value.is === "renewed";
    const outcome = answers.some(isRenewed) ? await this.#acknowledged(epoch) : { count: 0 };
    // A server that does not answer, or does not know a hold, may be the wrong one: another
    // connection next time.
    if ("error" in outcome || !answers.every(isRenewed)) this.close();
    for (const [i, { name, resolve, reject }] of jobs.entries()) {
      const answer = answers[i];
      if (answer?.status !== "fulfilled") reject(answer?.reason);
      else if (answer.value.is !== "renewed") resolve(answer.value);
      else if ("error" in outcome) reject(outcome.error);
      else if (outcome.count < this.#wanted) {
        reject(new NotReplicatedError(name, this.#wanted, outcome.count));
      } else resolve(answer.value);
    }
  }

  /** How many replicas have all that this connection wrote since then. */
  async #acknowledged(epoch: number): Promise<{ readonly count: number } | { readonly error: unknown }> {
    try {
      const count = await pTimeout(this.#connection.wait(this.#wanted, this.#timeout), {
        milliseconds: this.#timeout + WAIT_REPLY,
        message: `Redis did not say within ${duration(this.#timeout + WAIT_REPLY)} how many replicas have the lock`,
        customTimers,
      });
      // A WAIT on another connection than the writes counts replicas that have nothing.
      if (this.#commands.epoch !== epoch) throw new Error("the connection to Redis was lost");
      return { count: Number(count) };
    } catch (error) {
      return { error };
    }
  }
}

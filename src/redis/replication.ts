import pTimeout from "p-timeout";
import { NotReplicatedError } from "../api/errors.ts";
import type { Settings } from "../api/options.ts";
import { clocks } from "../util/clock.ts";
import { duration } from "../util/duration.ts";
import { customTimers } from "../util/real-timers.ts";
import { slotOf } from "../util/slots.ts";
import type { Commands } from "./commands.ts";
import { type Link, NO_NODE } from "./driver.ts";
import type { RenewAnswer } from "./replies.ts";
import { ScriptRunner } from "./script-runner.ts";

/** Runs a script that writes to the key. */
type Write = (commands: Commands) => Promise<RenewAnswer>;

interface Job {
  readonly name: string;
  readonly key: string;
  readonly write: Write;
  resolve(answer: RenewAnswer): void;
  reject(error: unknown): void;
}

type ReplicationSettings = Pick<Settings, "replicas" | "replicaTimeout" | "replyTimeout" | "prefix">;

/**
 * Waits until that many replicas have a hold: writes to it, then sends WAIT on the same connection.
 * The connection is used for nothing else, because WAIT keeps it busy; in Cluster there is one for
 * each primary in use.
 */
export class Replication {
  readonly #link: Link;
  readonly #settings: ReplicationSettings;
  readonly #confirmers = new Map<string, Confirmer>();
  #closed = false;

  constructor(link: Link, settings: ReplicationSettings) {
    this.#link = link;
    this.#settings = settings;
  }

  /**
   * Writes to a key, and resolves with the answer when enough replicas have the write.
   *
   * @throws NotReplicatedError when fewer have it in time; the connection's or the server's error.
   */
  confirm(name: string, key: string, write: Write): Promise<RenewAnswer> {
    return new Promise((resolve, reject) => this.#add({ name, key, write, resolve, reject }));
  }

  #add(job: Job): void {
    try {
      this.#confirmer(job.key).add(job);
    } catch (error) {
      job.reject(error);
    }
  }

  close(): void {
    this.#closed = true;
    for (const confirmer of this.#confirmers.values()) confirmer.close();
  }

  #confirmer(key: string): Confirmer {
    if (this.#closed) throw new Error("the lock client is closed");
    const { nodes, keyPrefix } = this.#link;
    const place = nodes ? nodes.placeOf(slotOf(keyPrefix + this.#settings.prefix + key)) : this.#link;
    if (!place) throw new Error(NO_NODE);
    let confirmer = this.#confirmers.get(place.address);
    if (!confirmer || confirmer.ended) {
      const again = (job: Job): void => this.#add(job);
      confirmer = new Confirmer(place.openOnce(), this.#settings, again);
      this.#confirmers.set(place.address, confirmer);
    }
    return confirmer;
  }
}

/** How long the answer to a WAIT may take in addition to its timeout, in ms. */
const WAIT_REPLY = 1_000;

/**
 * One connection for WAIT. Requests that come while it waits are written together afterwards: one
 * WAIT covers them all.
 */
class Confirmer {
  readonly #link: Link;
  readonly #commands: ScriptRunner;
  readonly #wanted: number;
  readonly #timeout: number;
  readonly #handOn: (job: Job) => void;
  #jobs: Job[] = [];
  #busy = false;
  #isClosed = false;

  /** `handOn`: takes the requests that came during a batch in which this connection failed. */
  constructor(
    link: Link,
    { replicas, replicaTimeout, replyTimeout, prefix }: ReplicationSettings,
    handOn: (job: Job) => void,
  ) {
    this.#link = link;
    this.#handOn = handOn;
    this.#commands = new ScriptRunner(link, replyTimeout, prefix);
    this.#wanted = replicas;
    this.#timeout = replicaTimeout;
  }

  get ended(): boolean {
    return this.#isClosed || this.#link.state === "ended";
  }

  add(job: Job): void {
    this.#jobs.push(job);
    if (!this.#busy) void this.#work();
  }

  close(): void {
    this.#isClosed = true;
    this.#commands.detach();
    this.#link.close();
  }

  async #work(): Promise<void> {
    this.#busy = true;
    while (this.#jobs.length > 0 && !this.ended) await this.#batch(this.#jobs.splice(0));
    this.#busy = false;
    // RACE: on a closing connection they would be flushed, and callers would be refused without any
    // fault of theirs.
    for (const job of this.#jobs.splice(0)) this.#handOn(job);
  }

  async #batch(jobs: readonly Job[]): Promise<void> {
    const { epoch } = this.#commands;
    const answers = await Promise.allSettled(
      jobs.map(async ({ write }) => {
        const answer = await write(this.#commands);
        // It is true when it is read; WAIT may take longer than a grant lasts.
        return { ...answer, read: { mono: clocks.mono.now(), wall: clocks.wall.now() } };
      }),
    );
    const isRenewed = (answer: (typeof answers)[number]): boolean =>
      answer.status === "fulfilled" && answer.value.is === "renewed";
    const outcome = answers.some(isRenewed) ? await this.#acknowledged(epoch) : { count: 0 };
    // A server that does not answer, or does not know a hold, may be the wrong one: the next
    // attempt uses another connection.
    if ("error" in outcome || !answers.every(isRenewed)) this.close();
    for (const [i, { name, resolve, reject }] of jobs.entries()) {
      const answer = answers[i];
      if (answer?.status !== "fulfilled") reject(answer?.reason);
      else if (answer.value.is !== "renewed") resolve(answer.value);
      else if ("error" in outcome) reject(outcome.error);
      // An answer that is not a number proves nothing.
      else if (!(outcome.count >= this.#wanted)) {
        reject(new NotReplicatedError(name, this.#wanted, outcome.count));
      } else resolve(answer.value);
    }
  }

  /** How many replicas have every write of this connection since then. */
  async #acknowledged(epoch: number): Promise<{ readonly count: number } | { readonly error: unknown }> {
    try {
      const count = await pTimeout(this.#link.command(["WAIT", this.#wanted, this.#timeout]), {
        milliseconds: this.#timeout + WAIT_REPLY,
        message: `Redis did not say within ${duration(this.#timeout + WAIT_REPLY)} how many replicas have the lock`,
        customTimers,
      });
      // A WAIT on another connection than the writes would count replicas that lack them.
      if (this.#commands.epoch !== epoch) throw new Error("the connection to Redis was lost");
      return { count: Number(count) };
    } catch (error) {
      return { error };
    }
  }
}

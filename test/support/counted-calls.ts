import type { ClusterLike, RedisLike } from "../../src/api/redis.ts";
import { StoredSettings } from "../../src/api/stored-settings.ts";
import { Hold } from "../../src/core/lease/hold.ts";
import type { AttemptOptions } from "../../src/core/lock-kind.ts";
import type { Callback } from "../../src/redis/call.ts";
import type { AttemptAnswer, ReleaseAnswer, YieldAnswer } from "../../src/redis/replies.ts";
import { ScriptRunner } from "../../src/redis/script-runner.ts";
import { CountedKind } from "../../src/wires/counted.ts";
import { ReadWriteKinds } from "../../src/wires/read-write.ts";
import { linkOf } from "./link.ts";

/**
 * The request of a reader, of a writer or of a caller that wants permits: `units` at least, `upTo`
 * at most.
 */
export interface Asked {
  readonly kind?: "read" | "write";
  readonly mode?: "try" | "queue" | "again";
  readonly units?: number;
  readonly upTo?: number;
  readonly permits?: number | null;
  readonly passes?: number;
}

/** The typed calls of a family of counted resources, as a client makes them, with promises. */
export class CountedCalls {
  readonly readWrite: ReadWriteKinds;
  readonly semaphore: CountedKind;
  readonly commands: ScriptRunner;
  readonly name: string;
  #made = 0;

  constructor(redis: RedisLike | ClusterLike, name: string) {
    this.commands = new ScriptRunner(linkOf(redis), 5_000);
    const stored = new StoredSettings({ report: () => {} });
    const server = { commands: this.commands, replication: null, window: 3_000, stored };
    this.readWrite = new ReadWriteKinds(server, 16);
    this.semaphore = new CountedKind(server, "semaphore", 16, false);
    this.name = name;
  }

  /** The channel on which a client with this id receives messages about its holds. */
  channelOf(client: string): string {
    return this.commands.keys.channels(client)(this.name);
  }

  hold(client: string): Hold {
    const number = `${++this.#made}`.padStart(8, "0");
    return new Hold(`${this.channelOf(client)}:${number}abcdefghijklm`, this.name);
  }

  /** `counted`: is the channel of this hold subscribed? */
  attempt(hold: Hold, asked: Asked = {}, counted = true): Promise<AttemptAnswer> {
    return this.#told((told) => this.#kind(asked).attempt({ ...this.#ask(hold, asked, counted), ...told }));
  }

  join(hold: Hold): Promise<AttemptAnswer> {
    return this.#told((told) => this.readWrite.join({ hold, lease: 30_000, ...told }));
  }

  /** For permits. */
  release(hold: Hold, stays = 0): Promise<ReleaseAnswer> {
    return this.#told((told) => this.semaphore.shrink(hold, stays, told));
  }

  /** For a writer. */
  yield(old: Hold, hold: Hold): Promise<YieldAnswer> {
    const { write } = this.readWrite.plain;
    return this.#told((told) => write.yield?.(old, { ...this.#ask(hold, {}, true), ...told }));
  }

  end(): void {
    this.commands.detach();
  }

  #kind({ kind }: Asked): CountedKind {
    return kind ? this.readWrite.plain[kind] : this.semaphore;
  }

  #ask(hold: Hold, asked: Asked, counted: boolean): AttemptOptions {
    const { mode = "queue", units = 1, upTo = units, permits = 5, passes = 0 } = asked;
    const terms = { lease: 30_000, watchdog: true, maxHold: 30_000, linger: 0 };
    return {
      hold,
      mode,
      head: { terms: { ...terms, permits: { units, of: permits } } },
      run: { units, upTo, permits, callers: 1 },
      lease: 30_000,
      entryTtl: 4_500,
      passes,
      reserves: passes,
      after: null,
      flag: 0,
      nonce: null,
      channel: { name: hold.id.slice(0, -22), isHeard: counted, counted },
    };
  }

  #told<Answer>(send: (callback: Callback<Answer>) => void): Promise<Answer> {
    return new Promise((answered, failed) => send({ answered, failed }));
  }
}

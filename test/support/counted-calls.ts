import { CountedScripts } from "../../src/kinds/counted-scripts.ts";
import type { Told } from "../../src/redis/call.ts";
import type { CountedAnswer, CountedRelease } from "../../src/redis/counted-replies.ts";
import { ScriptRunner } from "../../src/redis/script-runner.ts";
import type { ClusterLike, RedisLike } from "../../src/redis/types.ts";

type Ask = Parameters<CountedScripts["attempt"]>[1];
type Hold = Parameters<CountedScripts["attempt"]>[0] & { readonly token: number };

/** The typed calls of a family of counted resources, as a client makes them, with promises. */
export class CountedCalls {
  readonly scripts: CountedScripts;
  readonly commands: ScriptRunner;
  readonly name: string;
  #made = 0;

  constructor(redis: RedisLike | ClusterLike, family: "rw" | "semaphore", name: string) {
    this.commands = new ScriptRunner(redis, 5_000);
    this.scripts = new CountedScripts(this.commands, null, family, 3_000);
    this.name = name;
  }

  /** Where a client with this id hears what becomes of its holds. */
  channelOf(client: string): string {
    return this.commands.keys.channels(client)(this.name);
  }

  hold(client: string): Hold {
    const number = `${++this.#made}`.padStart(8, "0");
    return {
      id: `${this.channelOf(client)}:${number}abcdefghijklm`,
      name: this.name,
      label: "",
      token: 0,
      entry: "",
    };
  }

  /** `counted`: somebody hears the channel of this hold. */
  attempt(hold: Hold, ask: Partial<Ask>, counted = true): Promise<CountedAnswer> {
    return this.#told((told) => this.scripts.attempt(hold, this.#ask(hold, ask, counted), told));
  }

  release(hold: Hold, stays = 0): Promise<CountedRelease> {
    return this.#told((told) => this.scripts.release(hold, stays, told));
  }

  yield(old: Hold, stays: number, hold: Hold, ask: Partial<Ask>): Promise<CountedAnswer | CountedRelease> {
    return this.#told((told) => this.scripts.yield(old, stays, hold, this.#ask(hold, ask, true), told));
  }

  end(): void {
    this.commands.detach();
  }

  #ask({ id }: Hold, ask: Partial<Ask>, counted: boolean): Ask {
    const channel = { name: id.slice(0, -22), isHeard: counted, counted };
    const usual = { mode: "queue", lease: 30_000, as: "p", units: 1, upTo: 1, permits: 5 } as const;
    return { ...usual, passes: 0, entryTtl: 4_500, channel, ...ask };
  }

  #told<Answer>(send: (told: Told<Answer>) => void): Promise<Answer> {
    return new Promise((answered, failed) => send({ answered, failed }));
  }
}

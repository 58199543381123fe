import { redissonLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  decodeAttempt,
  decodeForced,
  decodeInspection,
  decodeRecount,
  decodeRelease,
  type Inspected,
  type ReleaseAnswer,
  type RenewAnswer,
  undecoded,
} from "../redis/replies.ts";
import type { ScriptRunner } from "../redis/script-runner.ts";
import { newRequestId } from "../util/random.ts";
import { HoldScripts } from "./renewing.ts";

/** How long an unlock latch lives: Redisson's own default, (3 s timeout + 1 s delay) × 4 attempts. */
const LATCH_TTL = 16_000;

/** The scripts of Redisson's plain lock, and of its fenced lock, as typed calls. */
export class RedissonScripts extends HoldScripts {
  readonly #isFenced: boolean;

  constructor(commands: ScriptRunner, replication: Replication | null, isFenced: boolean) {
    super(commands, replication, lua);
    this.#isFenced = isFenced;
  }

  acquire(name: string, owner: string, lease: number, channel: string): Promise<AttemptAnswer> {
    const { keys } = this.commands;
    const clock = keys.clock(name);
    const { isKnown } = this.rights;
    const unlooked = isKnown ? "" : channel;
    const args = [owner, lease, this.commands.notAfter(clock), unlooked, this.#isFenced ? "fenced" : ""];
    const decode = this.rights.learning(this.commands.timed(clock, decodeAttempt));
    const latch = isKnown ? [] : [keys.redissonLatch(name, "0")];
    return this.commands.run(lua.acquire, [...this.#counted(name), ...latch], args, decode);
  }

  /** Ends the hold whatever its count is, and wakes the waiters. */
  async release(name: string, owner: string, channel: string): Promise<ReleaseAnswer> {
    const latch = this.commands.keys.redissonLatch(name, newRequestId());
    const args = [owner, channel, LATCH_TTL];
    const answer = await this.commands.run(lua.release, [name, latch], args, decodeRelease);
    // The latch has done its work. Nobody waits for its end, and it expires by itself when this fails.
    if (answer.is === "released") this.commands.run(lua.forget, [latch], [], undecoded).catch(() => {});
    return answer;
  }

  recount(name: string, owner: string, count: number): Promise<RenewAnswer["is"]> {
    return this.commands.run(lua.recount, [name], [owner, count], decodeRecount);
  }

  inspect(name: string): Promise<Inspected> {
    return this.commands.run(lua.inspect, this.#counted(name), [], decodeInspection);
  }

  forceRelease(name: string, channel: string): Promise<boolean> {
    return this.commands.run(lua.forceRelease, [name], [channel], decodeForced);
  }

  /** The lock, and the counter of its tokens if it has one. */
  #counted(name: string): string[] {
    return this.#isFenced ? [name, this.commands.keys.redissonToken(name)] : [name];
  }
}

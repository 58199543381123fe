import { redissonLatch } from "../keys.ts";
import { newRequestId } from "../random.ts";
import {
  type AttemptAnswer,
  decodeAttempt,
  decodeForced,
  decodeInspection,
  decodeRecount,
  decodeRelease,
  decodeRenewals,
  type Inspection,
  type ReleaseAnswer,
  type RenewAnswer,
} from "./answers.ts";
import type { Commands } from "./commands.ts";
import { redissonLua as lua } from "./lua.generated.ts";

/** How long an unlock latch lives: Redisson's own default, (3 s timeout + 1 s delay) × 4 attempts. */
const LATCH_TTL = 16_000;

/** The scripts of Redisson's plain lock as typed calls. */
export class RedissonScripts {
  readonly #commands: Commands;

  constructor(commands: Commands) {
    this.#commands = commands;
  }

  async acquire(name: string, owner: string, lease: number): Promise<AttemptAnswer> {
    const args = [owner, lease, this.#commands.notAfter()];
    const answer = decodeAttempt(await this.#commands.run(lua.acquire, [name], args));
    this.#commands.sawServerTime(answer.at);
    return answer;
  }

  /** Ends the hold whatever its count is, and wakes the waiters. */
  async release(name: string, owner: string, channel: string): Promise<ReleaseAnswer> {
    const latch = redissonLatch(name, newRequestId());
    const answer = decodeRelease(
      await this.#commands.run(lua.release, [name, latch], [owner, channel, LATCH_TTL]),
    );
    // The latch has done its work. Nobody waits for its end, and it expires by itself when this fails.
    if (answer.is === "released") this.#commands.run(lua.forget, [latch], []).catch(() => {});
    return answer;
  }

  async recount(name: string, owner: string, count: number): Promise<RenewAnswer["is"]> {
    return decodeRecount(await this.#commands.run(lua.recount, [name], [owner, count]));
  }

  async renew(
    holds: readonly { key: string; id: string; ttl: number }[],
    timeout: number,
  ): Promise<RenewAnswer[]> {
    const args = holds.flatMap((hold) => [hold.id, hold.ttl]);
    return decodeRenewals(
      await this.#commands.run(
        lua.renew,
        holds.map((hold) => hold.key),
        args,
        timeout,
      ),
    );
  }

  async inspect(name: string): Promise<Inspection> {
    return decodeInspection(await this.#commands.run(lua.inspect, [name], []));
  }

  async forceRelease(name: string, channel: string): Promise<boolean> {
    return decodeForced(await this.#commands.run(lua.forceRelease, [name], [channel]));
  }
}

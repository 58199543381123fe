import type { Inspected } from "../api/lock.ts";
import type { Hold } from "../core/lease/hold.ts";
import {
  type Ask,
  type Callback,
  type Leavable,
  type LockKind,
  type Meant,
  tell,
} from "../core/lock-kind.ts";
import { ordered, read } from "../redis/codec.ts";
import type { Commands } from "../redis/commands.ts";
import type { Keys } from "../redis/keys.ts";
import type { Replication } from "../redis/replication.ts";
import { inspectionOf, type ReleaseAnswer, type RenewAnswer } from "../redis/replies.ts";
import { Statement } from "../redis/statement.ts";
import { quote } from "../util/quote.ts";
import { newRedissonId, newRequestId } from "../util/random.ts";
import { HoldScripts } from "./hold-scripts.ts";
import { redissonLua as lua } from "./redisson-lua.generated.ts";

/** How long an unlock latch lives: Redisson's own default, (3 s timeout + 1 s delay) × 4 attempts. */
const LATCH_TTL = 16_000;

/**
 * Redisson's plain lock, key for key and message for message, to share a lock with Java: one
 * release channel for each lock, a broadcast that only says "try again", the holder's TTL as the
 * fallback. It has no fencing tokens, unless `isFenced`: Redisson's fenced lock is the same with a
 * counter beside it.
 *
 * An owner is `<uuid>:<number>`, as in Java, where the number is a thread's; here every hold has
 * its own (R1).
 */
export class RedissonKind extends HoldScripts implements LockKind {
  readonly label: "redissonLock" | "redissonFencedLock";
  readonly eventKind: "redisson" | "redissonFenced";
  /**
   * Both have the same key. A scope that holds the plain lock has no token for a caller that enters
   * the fenced one.
   */
  readonly protocol: "redisson" | "redisson-fenced";
  /** Java sees the same owner, entered once, with a TTL, and cannot misread it. */
  readonly localHandoffs: number;
  readonly wake: LockKind["wake"];
  readonly hasTokens: boolean;
  readonly #attempted = this.attempted((reply) => read(lua.acquire.form.replies, reply));
  readonly #isFenced: boolean;
  readonly #uuid = newRedissonId();

  constructor(commands: Commands, replication: Replication | null, isFenced: boolean, passes: number) {
    super(commands, replication, lua);
    this.label = isFenced ? "redissonFencedLock" : "redissonLock";
    this.eventKind = isFenced ? "redissonFenced" : "redisson";
    this.protocol = isFenced ? "redisson-fenced" : "redisson";
    this.localHandoffs = passes;
    this.wake = { by: "message", channel: (name) => commands.keys.redissonChannel(name) };
    this.#isFenced = isFenced;
    this.hasTokens = isFenced;
  }

  override shownAs(hold: Hold): string {
    return this.ownerOf(hold);
  }

  protected override ownerOf({ id }: { readonly id: string }): string {
    return `${this.#uuid}:${id.slice(id.lastIndexOf(":") + 1)}`;
  }

  attempt(ask: Ask): void {
    const { commands } = this;
    const { hold } = ask;
    const { name } = hold;
    const isKnown = this.knownIn === commands.epoch;
    const latch = isKnown ? [] : [commands.keys.redissonLatch(name, "0")];
    const keys = commands.keysOf([...this.#counted(name), ...latch]);
    const args = ordered(lua.acquire, {
      owner: this.ownerOf(hold),
      lease: ask.lease,
      notAfter: commands.notAfter(keys),
      channel: isKnown ? "" : commands.keys.redissonChannel(name),
      fenced: this.#isFenced ? "fenced" : "",
    });
    commands.send(new Statement(commands, lua.acquire, keys, args), this.#attempted, ask);
  }

  /** Ends the hold whatever its count is, and wakes the waiters. */
  async withdraw(hold: Leavable): Promise<ReleaseAnswer> {
    const { commands } = this;
    const { name } = hold;
    const latch = commands.keys.redissonLatch(name, newRequestId());
    const channel = commands.keys.redissonChannel(name);
    const args = { owner: this.ownerOf(hold), channel, latch: LATCH_TTL };
    const answer = await commands.run(lua.release, [name, latch], args);
    // The latch has done its work. No caller waits for its deletion; if that fails, it expires.
    if (answer.is === "released") commands.run(lua.forget, [latch], {}).catch(() => {});
    return answer;
  }

  release(hold: Hold, callback: Callback<ReleaseAnswer>): void {
    tell(this.withdraw(hold), callback);
  }

  readonly recount = async (hold: Hold, count: number): Promise<RenewAnswer["is"]> =>
    (await this.commands.run(lua.recount, [hold.name], { owner: this.ownerOf(hold), count })).is;

  async inspect(name: string): Promise<Inspected> {
    return inspectionOf(await this.commands.run(lua.inspect, this.#counted(name), {}));
  }

  async forceRelease(name: string, _label: string | null, { holder, token }: Meant): Promise<number> {
    const { commands } = this;
    const keys = this.#counted(name);
    const owner = holder === null ? "" : await this.holderWith(holder, commands.run(lua.inspect, keys, {}));
    if (owner === null) return 0;
    const args = { channel: commands.keys.redissonChannel(name), token: token ?? "", owner };
    return (await commands.run(lua.forceRelease, keys, args)).count;
  }

  /** The lock, and the counter of its tokens if it has one. */
  #counted(name: string): string[] {
    return this.#isFenced ? [name, this.commands.keys.redissonToken(name)] : [name];
  }
}

/** @throws RangeError for a name whose keys Redisson would have in different slots of a Cluster. */
export function checkFitsRedisson(keys: Keys, name: string): void {
  if (keys.fitsRedisson(name)) return;
  const { prefix } = keys;
  const where = `in Cluster Redisson's keys of ${quote(name)} have different hash slots`;
  const cure = /[{}]/.test(name)
    ? "use a name without braces"
    : `the prefix ${quote(prefix)} must have no braces, or a whole tag`;
  throw new RangeError(`Cannot create a lock: ${where}; ${cure}`);
}

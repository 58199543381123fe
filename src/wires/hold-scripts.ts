import type { RedisArgument } from "../api/redis.ts";
import type { Hold } from "../core/lease/hold.ts";
import type { Named, Renewal } from "../core/lease/renewer.ts";
import type { Ask, AttemptOptions, LockKind } from "../core/lock-kind.ts";
import { GRANT_WINDOW, RENEWAL_BATCH } from "../defaults.ts";
import type { Decode } from "../redis/call.ts";
import type { Commands } from "../redis/commands.ts";
import { unexpected } from "../redis/fields.ts";
import { withoutBits } from "../redis/hold-ids.ts";
import type { handoffLua } from "../redis/lua.generated.ts";
import { askerOf, publishProbe } from "../redis/messages.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  type AttemptReply,
  attemptOf,
  type HolderFlag,
  type RenewAnswer,
} from "../redis/replies.ts";
import type { Script, ScriptKeys } from "../redis/script.ts";
import { Statement } from "../redis/statement.ts";

/** No reply has given the server's time yet: a command may run whenever it arrives. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * A hold's queue entry up to its id. It never changes once made, because every later command names
 * it. `window`: the longest TTL of a grant, in ms. `numbers`: how many tokens are reserved, and the
 * other numbers that the hold asks for.
 */
export function entryPrefix(ask: AttemptOptions, window: number, mode: string, numbers: string): string {
  const { hold, channel, lease } = ask;
  // RACE: a waiter without messages finds its grant at a re-check. The grant must live until then,
  // however short the waiter's lease.
  const shortest = channel?.isHeard === false ? Math.max(lease, GRANT_WINDOW) : lease;
  const counted = channel?.counted ? 1 : 0;
  hold.entry ||= `${counted}${mode} ${Math.min(shortest, window)} ${numbers} `;
  return hold.entry;
}

/** The scripts that every protocol has in the same form. */
type Renewing = Readonly<Pick<typeof handoffLua, "renew" | "confirm">>;

/** The most keys of one lock. */
const OWN_KEYS = 4;

/**
 * Common parts of the scripts of every protocol on one Redis: what an attempt's answer reveals, and
 * how a hold is renewed. `renew` and `confirm` take the same arguments everywhere.
 */
export abstract class HoldScripts {
  readonly batch: number;
  /** True: a caller gets the lock only after `confirm`. */
  readonly isConfirmed: boolean;
  abstract readonly hasTokens: boolean;
  readonly hasStays: boolean = false;
  readonly policy: LockKind["policy"] = "exclusive";
  protected readonly commands: Commands;
  /**
   * The epoch of the connection whose user is known to have all rights that the scripts need. The
   * first acquisition of each connection checks them before it writes anything: an ACL that lacks
   * one of the commands would stop a script in the middle.
   */
  protected knownIn = -1;
  readonly #replication: Replication | null;
  readonly #lua: Renewing;

  constructor(commands: Commands, replication: Replication | null, lua: Renewing) {
    this.commands = commands;
    this.batch = commands.isCluster ? 1 : RENEWAL_BATCH;
    this.isConfirmed = replication !== null;
    this.#replication = replication;
    this.#lua = lua;
  }

  abstract inspect(name: string): ReturnType<LockKind["inspect"]>;

  holder(name: string): ReturnType<LockKind["inspect"]> {
    return this.inspect(name);
  }

  shownAs({ id }: Hold): string {
    return id;
  }

  /** A lock's key in Redis, and a hold's name there. */
  protected keyOf(name: string): string {
    return name;
  }

  protected ownerOf({ id }: Named): string {
    return id;
  }

  /**
   * The full text in Redis of the holder with this id, of which people see a part. Null: that
   * holder does not hold the lock.
   */
  protected async holderWith(id: string, seen: Promise<{ readonly hold: string }>): Promise<string | null> {
    const { hold } = await seen;
    return withoutBits(hold) === id ? hold : null;
  }

  /**
   * Reads the answers of attempts with a kind's own `read`. They give the server's time, and prove
   * that no right is missing: otherwise they would be errors.
   */
  protected attempted(read: (reply: unknown) => AttemptReply): Decode<AttemptAnswer, Ask> {
    return (reply, { statement: { keys }, callback, epoch }) => {
      const answer = attemptOf(read(reply), callback);
      const { is } = answer;
      const isOdd = is === "owner" && answer.token > 0 !== this.hasTokens;
      // Only a member of a multi-lock is blocked: it names the lock before it, too.
      if (isOdd || (is === "blocked" && keys.names.length <= OWN_KEYS)) throw unexpected(reply);
      this.commands.tellTime(keys, answer.at);
      this.knownIn = epoch;
      return answer;
    };
  }

  /** `first` is `known` with a check of the user's rights, for a connection's first command. */
  protected checked(known: Script, first: Script, keys: ScriptKeys, args: RedisArgument[]): Statement {
    const { commands } = this;
    if (this.knownIn === commands.epoch) return new Statement(commands, known, keys, args);
    return new Statement(commands, first, keys, [...args, commands.keys.anyChannel]);
  }

  /**
   * Sent on the asker's own channel. Only the asker's id is taken from its message; the answer
   * names the lock that is ours.
   */
  tellAsker(name: string, nonce: string, is: "busy" | "idle"): void {
    const asker = askerOf(nonce);
    if (asker === null) return;
    const { commands } = this;
    const { prefix } = commands.keys;
    const message = `${is} ${nonce} ${prefix}${this.keyOf(name)}`;
    publishProbe(commands, commands.keys.channelOf(asker, name), message).catch(() => {});
  }

  async renew(holds: readonly Renewal[], timeout: number): Promise<readonly RenewAnswer[]> {
    const keys = holds.map(({ hold }) => this.keyOf(hold.name));
    const args = holds.map(({ hold, ttl }) => ({ hold: this.ownerOf(hold), ttl }));
    return (await this.commands.run(this.#lua.renew, keys, args, timeout)).all;
  }

  /** With replicas, these must confirm it. */
  async confirm(
    hold: Named,
    ttl: number,
    timeout: number,
    flag: HolderFlag | null = null,
  ): Promise<RenewAnswer> {
    if (this.#replication) {
      const { name } = hold;
      const key = this.keyOf(name);
      const args = { hold: this.ownerOf(hold), ttl };
      return this.#replication.confirm(name, key, (commands) =>
        commands.run(this.#lua.confirm, [key], args, timeout),
      );
    }
    const [answer] = await this.renew([{ hold, ttl, flag }], timeout);
    if (!answer) throw unexpected(answer);
    return answer;
  }
}

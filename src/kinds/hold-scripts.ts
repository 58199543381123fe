import { GRANT_WINDOW, RENEWAL_BATCH } from "../defaults.ts";
import type { Hold } from "../engine/lease/hold.ts";
import type { Renewal } from "../engine/lease/renewer.ts";
import type { Ask, AttemptOptions, LockKind } from "../engine/lock-kind.ts";
import { plain, type Sent } from "../redis/call.ts";
import type { Commands } from "../redis/commands.ts";
import { Fields, unexpected, whole } from "../redis/fields.ts";
import { withoutBits } from "../redis/hold-ids.ts";
import { askerOf, publishProbe } from "../redis/messages.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  decodeRenewals,
  type HolderFlag,
  type RenewAnswer,
  readAttempt,
} from "../redis/replies.ts";
import type { Script } from "../redis/script.ts";

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

/**
 * Each argument costs the server 1 to 3 thousand instructions, so those at the end that say nothing
 * are left out.
 */
export function withoutDefaults(args: (string | number)[]): (string | number)[] {
  while (args.at(-1) === "" || args.at(-1) === 0) args.pop();
  return args;
}

/** The most keys of one lock. */
const OWN_KEYS = 4;

interface Named {
  readonly name: string;
  readonly id: string;
  readonly label: string;
}

/**
 * Common parts of the scripts of every protocol on one Redis: what an attempt's answer reveals, and
 * how a hold is renewed. `renew` and `confirm` take the same arguments everywhere.
 */
export abstract class HoldScripts {
  readonly batch: number;
  /** True: a caller gets the lock only after `confirm`. */
  readonly isConfirmed: boolean;
  abstract readonly hasTokens: boolean;
  /** The least token that an acquire of this kind answers. */
  protected readonly firstToken: number = 0;
  readonly hasStays: boolean = false;
  readonly releaseAll: LockKind["releaseAll"] = null;
  readonly answer: LockKind["answer"] = null;
  readonly policy: LockKind["policy"] = "exclusive";
  readonly shrink: LockKind["shrink"] = null;
  readonly unitsFreeWithout: LockKind["unitsFreeWithout"] = null;
  protected readonly commands: Commands;
  /**
   * The epoch of the connection whose user is known to have all rights that the scripts need. The
   * first acquisition of each connection checks them before it writes anything: an ACL that lacks
   * one of the commands would stop a script in the middle.
   */
  protected knownIn = -1;
  readonly #replication: Replication | null;
  readonly #lua: { readonly renew: Script; readonly confirm: Script };

  constructor(
    commands: Commands,
    replication: Replication | null,
    lua: { readonly renew: Script; readonly confirm: Script },
  ) {
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
  protected async holderWith(id: string, inspect: Script, keys: readonly string[]): Promise<string | null> {
    const text = await this.commands.run(inspect, keys, [], (reply) => new Fields(reply).text());
    return withoutBits(text) === id ? text : null;
  }

  /**
   * Reads the answer of an attempt. It gives the server's time, and proves that no right is
   * missing: otherwise it would be an error.
   */
  protected readonly attempted = (
    reply: unknown,
    { statement, callback, epoch }: Sent<Ask>,
  ): AttemptAnswer => {
    const answer = whole(plain(reply), readAttempt, callback.lease, callback.flag);
    const { is } = answer;
    const { keys } = statement;
    const isOdd =
      is === "owner" ? answer.token < this.firstToken || answer.token > 0 !== this.hasTokens : false;
    // Only a member of a multi-lock is blocked: it names the lock before it, too.
    if (isOdd || (is === "blocked" && keys.names.length <= OWN_KEYS)) throw unexpected(reply);
    this.commands.tellTime(keys, answer.at);
    this.knownIn = epoch;
    return answer;
  };

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

  renew(holds: readonly Renewal[], timeout: number): Promise<RenewAnswer[]> {
    const keys = holds.map(({ name }) => this.keyOf(name));
    const args = holds.flatMap((hold) => [this.ownerOf(hold), hold.ttl]);
    return this.commands.run(this.#lua.renew, keys, args, decodeRenewals, timeout);
  }

  /** With replicas, these must confirm it. */
  async confirm(
    hold: Named,
    ttl: number,
    timeout: number,
    flag: HolderFlag | null = null,
  ): Promise<RenewAnswer> {
    const { name, id, label } = hold;
    const args = [this.ownerOf(hold), ttl];
    if (this.#replication)
      return this.#replication.confirm(name, this.keyOf(name), this.#lua.confirm, args, timeout);
    const [answer] = await this.renew([{ name, id, label, ttl, record: null, flag: flag }], timeout);
    if (!answer) throw unexpected(answer);
    return answer;
  }
}

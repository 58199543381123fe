import { encodeLabel } from "../api/label.ts";
import type { Inspected } from "../api/lock.ts";
import type { Party } from "../api/party.ts";
import type { Hold } from "../core/lease/hold.ts";
import type { Named, Renewal } from "../core/lease/renewer.ts";
import type { Ask, Callback, Leavable, LockKind, Meant, YieldAsk } from "../core/lock-kind.ts";
import { LINGERING_HANDOFFS, LOCAL_HANDOFFS, SHOWN_MAX } from "../defaults.ts";
import type { Sent } from "../redis/call.ts";
import { type Args, ordered, read } from "../redis/codec.ts";
import { codes } from "../redis/codes.generated.ts";
import type { Commands } from "../redis/commands.ts";
import { tokenTime } from "../redis/fields.ts";
import type { LockKeys } from "../redis/keys.ts";
import { handoffLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  asDigits,
  attemptOf,
  isApart,
  queueInspectionOf,
  RELEASED,
  type ReleaseAnswer,
  type RenewAnswer,
  readHeld,
  type YieldAnswer,
} from "../redis/replies.ts";
import { isLong, micros, PreparedStatement, Statement } from "../redis/statement.ts";
import { HandoffKeys } from "./handoff-keys.ts";
import { entryPrefix, HoldScripts, NEVER } from "./hold-scripts.ts";

/** The place of the clock among the keys of a lock: the last. */
const CLOCK = 3;

/** The places of those arguments of an acquire and a release that differ each time. */
const NOT_AFTER = 2;
const TOKEN = 1;

/**
 * The keys of so many locks are remembered. A hold does not keep them: they take more memory than all
 * else about a lock that is held.
 */
const RECENT = 64;

/** While the keys of a lock are apart, a renewal of the lock alone must still be in time. */
const renewStays = { ...lua.renewStays, isImpatient: true as const };
const releaseStays = { ...lua.releaseStays, isWhole: true as const };

/** An attempt's, whichever script it has sent. */
const PLACES = { ...lua.acquire.form.replies, gone: lua.recheck.form.replies.gone };

const released = (reply: unknown): ReleaseAnswer =>
  reply === codes.RELEASED ? RELEASED : read(lua.release.form.replies, reply);

/**
 * The default lock, and its fair variant: waiters queue in Redis, and an unlock makes the next one
 * the owner. A fair lock has a queue entry for every waiter and no local hand-offs, so that the
 * order holds over all processes. Positions of arguments are defined only here and in the headers
 * under lua/handoff.
 */
export class HandoffKind extends HoldScripts implements LockKind {
  readonly label: LockKind["label"];
  readonly eventKind: LockKind["eventKind"];
  readonly protocol: LockKind["protocol"] = "handoff";
  readonly wake: LockKind["wake"];
  readonly localHandoffs: number;
  readonly lingeringHandoffs: number;
  readonly tokensAhead = codes.TOKENS_AHEAD;
  override readonly hasStays: boolean;
  readonly hasTokens = true;
  protected readonly window: number;
  /** A lock just used is likely to be used again, and will be released. */
  #latest: HandoffKeys | null = null;
  readonly #recent = new Map<string, HandoffKeys>();

  constructor(
    commands: Commands,
    replication: Replication | null,
    isFair: boolean,
    localHandoffs: number | undefined,
    window: number,
  ) {
    super(commands, replication, lua);
    this.label = isFair ? "fairLock" : "lock";
    this.eventKind = isFair ? "fair" : "lock";
    this.wake = { by: "grant", solitary: isFair };
    this.localHandoffs = localHandoffs ?? LOCAL_HANDOFFS;
    this.lingeringHandoffs = localHandoffs ?? LINGERING_HANDOFFS;
    this.hasStays = !isFair && replication === null;
    this.window = window;
  }

  // ---- the frequent commands: no promise, and nothing made twice

  attempt(ask: Ask): void {
    const { commands } = this;
    const { hold, mode, lease, passes, reserves, flag } = ask;
    const made = this.keysOf(hold);
    const notAfter = commands.notAfter(made.script) * 1_000;
    const isUsual = this.knownIn === commands.epoch && ask.after === null && ask.nonce === null;
    if (!isUsual || mode === "again" || hold.entry !== "" || !isLong(notAfter)) {
      this.#attempt(ask, made, notAfter);
      return;
    }
    const owner = hold.id + hold.label;
    const { isHeard = false, counted = false } = ask.channel ?? {};
    let last = made.acquire;
    if (
      last?.statement.holdLength !== owner.length ||
      last.mode !== mode ||
      last.lease !== lease ||
      last.passes !== passes ||
      last.reserves !== reserves ||
      last.flag !== flag ||
      last.isHeard !== isHeard ||
      last.counted !== counted
    ) {
      const entry = mode === "queue" ? entryPrefix(ask, this.window, "", `${passes}`) : "";
      const args = ordered(lua.acquire, {
        hold: owner,
        lease,
        notAfter: micros(notAfter),
        entry,
        told: flag,
        passes: reserves,
      });
      const statement = new PreparedStatement(commands, lua.acquire, made.script, args, NOT_AFTER);
      last = { mode, lease, passes, reserves, flag, isHeard, counted, entry, statement };
      made.acquire = last;
    }
    hold.entry = last.entry;
    commands.send(last.statement, this.#acquired, ask, owner, notAfter);
  }

  /** One that is sent seldom: a re-check, a member of a multi-lock, the first of a connection. */
  #attempt(ask: Ask, { script }: HandoffKeys, notAfter: number): void {
    const { commands } = this;
    const { hold, mode, lease, passes, reserves, flag, after, nonce } = ask;
    const owner = hold.id + hold.label;
    if (mode === "again") {
      const { entryTtl, channel } = ask;
      const args = ordered(lua.recheck, {
        hold: owner,
        lease,
        passes,
        entry: hold.entry + owner,
        stays: entryTtl,
        counted: channel?.counted ? 1 : 0,
        told: flag,
      });
      commands.send(this.checked(lua.recheck, lua.firstRecheck, script, args), this.#attempted, ask);
      return;
    }
    const entry = mode === "queue" ? entryPrefix(ask, this.window, "", `${passes}`) : "";
    const before = after ? after.id + after.label : asDigits(ask.meant ?? null);
    const args = ordered(lua.acquire, {
      hold: owner,
      lease,
      notAfter: notAfter || NEVER,
      entry,
      told: flag,
      passes: reserves,
      before,
      nonce: nonce ?? "",
    });
    const keys = after ? commands.keysOf([...script.names, this.keysOf(after).lock]) : script;
    commands.send(this.checked(lua.acquire, lua.firstAcquire, keys, args), this.#acquired, ask);
  }

  readonly #attempted = this.attempted((reply) => read(PLACES, reply));

  /**
   * Usually the answer is that the hold owns the lock and no caller waits: a single text, the
   * server's time, which is also the token. Or that the lock is held: a single number.
   */
  readonly #acquired = (reply: unknown, call: Sent<Ask>): AttemptAnswer => {
    if (Array.isArray(reply)) return this.#attempted(reply, call);
    let answer: AttemptAnswer;
    // A string: a number of an ioredis with `stringNumbers`, or a text of a wrapped connection.
    if (Buffer.isBuffer(reply) || (typeof reply === "string" && Number(reply) < codes.HELD_PACKED)) {
      const at = tokenTime(reply);
      const { lease: ttl, flag } = call.callback;
      answer = { is: "owner", at, token: at, ttl, already: false, waits: false, isTold: flag > 0 };
    } else answer = readHeld(reply, call.number || Number(call.argv[NOT_AFTER]));
    this.commands.tellTime(call.statement.keys, answer.at);
    this.knownIn = call.epoch;
    return answer;
  };

  release(hold: Hold, callback: Callback<ReleaseAnswer>): void {
    const { commands } = this;
    const made = this.keysOf(hold);
    const owner = hold.id + hold.label;
    const { token } = hold;
    const last = made.release;
    let statement: Statement | null = last?.holdLength === owner.length && isLong(token) ? last : null;
    if (!statement) {
      const args = ordered(lua.release, { hold: owner, token: micros(token) });
      // RACE: a forged grant gives a token of fewer digits. A statement with another length would shift
      // all later replies of the connection.
      if (!isLong(token)) statement = new Statement(commands, lua.release, made.script, args);
      else statement = made.release = new PreparedStatement(commands, lua.release, made.script, args, TOKEN);
    }
    commands.send(statement, released, callback, owner, token);
  }

  yield(old: Hold, ask: YieldAsk): void {
    const { hold, lease, passes, flag } = ask;
    const owner = hold.id + hold.label;
    const entry = entryPrefix(ask, this.window, "", `${passes}`) + owner;
    const args = ordered(lua.yield, {
      old: old.id + old.label,
      token: old.token,
      hold: owner,
      lease,
      passes,
      entry,
      told: flag,
    });
    const statement = new Statement(this.commands, lua.yield, this.keysOf(hold).script, args);
    this.commands.send(statement, this.#yielded, ask);
  }

  /**
   * The answer about the new hold, as for an attempt; or about the old one, if that was not held
   * any more.
   */
  readonly #yielded = (reply: unknown, { statement, callback }: Sent<YieldAsk>): YieldAnswer => {
    const answer = read(lua.yield.form.replies, reply);
    if (!("at" in answer)) return answer;
    this.commands.tellTime(statement.keys, answer.at);
    return attemptOf(answer, callback);
  };

  /** The keys of its family of locks. */
  protected keysAt(name: string): LockKeys {
    return this.commands.keys.of(name);
  }

  protected keysOf({ name }: { readonly name: string }): HandoffKeys {
    return this.#latest?.name === name ? this.#latest : this.#recentKeysOf(name);
  }

  #recentKeysOf(name: string): HandoffKeys {
    const recent = this.#recent;
    let keys = recent.get(name);
    if (!keys) {
      keys = new HandoffKeys(name, this.keysAt(name), this.commands);
      const [oldest] = recent.size < RECENT ? [] : recent.keys();
      if (oldest !== undefined) recent.delete(oldest);
      recent.set(name, keys);
    }
    this.#latest = keys;
    return keys;
  }

  // ---- the rare commands

  /** Removes a hold from the queue, and from the lock if it owns it. */
  withdraw({ id, name, label = "", entry = "" }: Leavable): Promise<{ readonly is: "released" | "gone" }> {
    const args = { hold: id, entry: entry && entry + id + label };
    return this.commands.run(lua.leave, this.keysOf({ name }).script, args);
  }

  protected override ownerOf({ id, label }: Named): string {
    return id + label;
  }

  protected override keyOf(name: string): string {
    return this.keysOf({ name }).lock;
  }

  override async renew(holds: readonly Renewal[], timeout: number): Promise<readonly RenewAnswer[]> {
    const made = holds.map(({ hold }) => this.keysOf(hold).script.names);
    const keys = [made[0]?.[CLOCK] ?? "", ...made.flatMap(([lock = "", queue = ""]) => [lock, queue])];
    const args = holds.map(({ hold, ttl, flag }) => ({ hold: this.ownerOf(hold), ttl, told: flag ?? "-" }));
    try {
      const { at, all } = await this.commands.run(renewStays, keys, args, timeout);
      return all.map((answer) => ({ ...answer, at }));
    } catch (error) {
      if (!isApart(error)) throw error;
      // That answer says that the hold is ours, and nothing about waiters.
      return super.renew(holds, timeout);
    }
  }

  readonly releaseAll = async (holds: readonly Hold[], isFirst: boolean): Promise<ReleaseAnswer[]> => {
    const made = holds.map((hold) => this.keysOf(hold).script.names);
    const keys = [made[0]?.[CLOCK] ?? "", ...made.flatMap((names) => names.slice(0, CLOCK))];
    const args = holds.map(({ id, label, token }) => ({ hold: id + label, token }));
    // In Cluster each is sent as text, because each may go to another server.
    const script = isFirst || this.commands.isCluster ? releaseStays : lua.releaseStays;
    const { clock, all } = await this.commands.run(script, keys, args);
    return all.map(({ is }) => ({ is, clock }));
  };

  answer(name: string, nonce: string, is: "busy" | "idle"): void {
    this.tellAsker(name, nonce, is);
  }

  /**
   * Locks with the same clock share a server: on one server all locks do, in Cluster those with a
   * tag in the prefix.
   */
  serverGroup(name: string): string {
    return this.commands.keys.of(name).clock;
  }

  inspect(name: string, nonce?: string): Promise<Inspected> {
    return this.#inspect(name, { most: SHOWN_MAX, nonce: nonce && `?${nonce}` });
  }

  override holder(name: string): Promise<Inspected> {
    return this.#inspect(name, { most: 0 });
  }

  async #inspect(name: string, args: Args<typeof lua.inspect>): Promise<Inspected> {
    const seen = await this.commands.run(lua.inspect, this.keysOf({ name }).script, args);
    return queueInspectionOf(seen.at, seen);
  }

  async forceRelease(name: string, label: string | null, { holder, token }: Meant): Promise<number> {
    let meant = token;
    if (holder !== null) {
      // The script identifies it by its token, which no later holder has.
      const seen = await this.holder(name);
      if (!seen.holder || !this.isOf(seen.holder, holder) || (token !== null && token !== seen.token))
        return 0;
      meant = seen.token;
    }
    const args = { label: encodeLabel(label), token: asDigits(meant) };
    return (await this.commands.run(lua.forceRelease, this.keysOf({ name }).script, args)).count;
  }

  /** Does this id name that holder? */
  protected isOf(holder: Party, id: string): boolean {
    return holder.id === id;
  }
}

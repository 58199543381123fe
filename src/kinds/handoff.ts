import { encodeLabel } from "../api/label.ts";
import type { Inspected } from "../api/lock.ts";
import type { Party } from "../api/party.ts";
import { SHOWN_MAX } from "../defaults.ts";
import type { Hold } from "../engine/lease/hold.ts";
import type { Renewal } from "../engine/lease/renewer.ts";
import type { AttemptOptions, Callback, Leavable, LockKind, Meant } from "../engine/lock-kind.ts";
import { plain, type ScriptCall } from "../redis/call.ts";
import { codes } from "../redis/codes.generated.ts";
import type { Commands } from "../redis/commands.ts";
import { FIRST_TOKEN, unexpected, whole } from "../redis/fields.ts";
import type { LockKeys } from "../redis/keys.ts";
import { handoffLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  asDigits,
  decodeCount,
  decodeHandoffInspection,
  decodeLeft,
  decodeRelease,
  decodeReleases,
  decodeStayRenewals,
  isApart,
  type Placed,
  type ReleaseAnswer,
  type RenewAnswer,
  readAttempt,
  type YieldAnswer,
} from "../redis/replies.ts";
import type { Script } from "../redis/script.ts";
import { HandoffKeys } from "./handoff-keys.ts";
import { entryPrefix, HoldScripts, NEVER } from "./hold-scripts.ts";

/** The place of the clock among the keys of a lock: the last. */
const CLOCK = 3;

/** The place of the digit among the arguments of an acquire. */
const DIGIT = 4;

const PLACED: ReadonlySet<unknown> = new Set([codes.OWNER, codes.MINE, codes.HELD]);

/** While the keys of a lock are apart, a renewal of the lock alone must still be in time. */
const renewStays: Script = { ...lua.renewStays, isImpatient: true };
const releaseStays: Script = { ...lua.releaseStays, isWhole: true };

const RELEASED: ReleaseAnswer = { is: "released", clock: 0 };

const released = (reply: unknown): ReleaseAnswer =>
  reply === codes.RELEASED ? RELEASED : decodeRelease(plain(reply));

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
  override readonly hasStays: boolean;
  readonly recount = null;
  readonly hasTokens = true;
  protected override readonly firstToken = FIRST_TOKEN;
  readonly #window: number;
  /** A lock just used is likely to be used again. */
  #latest: HandoffKeys | null = null;

  constructor(
    commands: Commands,
    replication: Replication | null,
    isFair: boolean,
    localHandoffs: number,
    window: number,
  ) {
    super(commands, replication, lua);
    this.label = isFair ? "fairLock" : "lock";
    this.eventKind = isFair ? "fair" : "lock";
    this.wake = { by: "grant", solitary: isFair };
    this.localHandoffs = localHandoffs;
    this.hasStays = !isFair && replication === null;
    this.#window = window;
  }

  // ---- the frequent commands: no promise, and nothing made twice

  attempt(hold: Hold, ask: AttemptOptions, callback: Callback<AttemptAnswer>): void {
    const { commands } = this;
    const { script } = this.keysOf(hold);
    const { lease, passes, mode, flag: digit, after, nonce } = ask;
    const isKnown = this.knownIn === commands.epoch;
    let lines = isKnown ? lua.acquire : lua.firstAcquire;
    let keys = script;
    let args: (string | number)[];
    let decode = this.#attempted;
    if (mode === "again") {
      lines = isKnown ? lua.recheck : lua.firstRecheck;
      args = [
        hold.id + hold.label,
        lease,
        passes,
        hold.entry + hold.id + hold.label,
        ask.entryTtl,
        ask.channel?.counted ? 1 : 0,
        digit,
      ];
      decode = this.#lookedAgain;
    } else {
      const notAfter = commands.notAfter(script) * 1_000 || NEVER;
      const owner = hold.id + hold.label;
      // Each argument costs the server 1 to 3 thousand instructions, so trailing ones with default
      // values are left out.
      if (mode === "queue" || after || nonce !== null)
        args = [owner, lease, notAfter, passes, digit, mode === "queue" ? this.#entryPrefix(hold, ask) : ""];
      else if (digit > 0) args = [owner, lease, notAfter, passes, digit];
      else args = passes > 0 ? [owner, lease, notAfter, passes] : [owner, lease, notAfter];
      if (after) keys = commands.keysOf([...script.names, this.keysOf(after).lock]);
      if (after || nonce !== null)
        args.push(after ? after.id + after.label : asDigits(ask.meant ?? null), nonce ?? "");
    }
    // On a connection whose rights are unknown, the script checks them first.
    if (!isKnown) args.push(commands.keys.anyChannel);
    commands.send(lines, keys, args, decode, callback);
  }

  /**
   * Usually the answer is that the hold owns the lock and no caller waits: a single text, the
   * server's time, which is also the token.
   */
  readonly #attempted = (reply: unknown, call: ScriptCall): AttemptAnswer => {
    const flag = call.argv[DIGIT];
    if (Array.isArray(reply)) return this.learned(reply, call, flag);
    const at = Number(reply);
    if (!(at >= FIRST_TOKEN && at <= Number.MAX_SAFE_INTEGER)) throw unexpected(reply);
    this.commands.tellTime(call.keys, at);
    this.knownIn = call.epoch;
    const ttl = Number(call.argv[1]);
    return {
      is: "owner",
      at,
      token: at,
      ttl,
      already: false,
      waits: false,
      isTold: flag === 1 || flag === 2,
    };
  };

  readonly #lookedAgain = (reply: unknown, call: ScriptCall): AttemptAnswer =>
    this.learned(reply, call, call.argv[6]);

  release(hold: Hold, callback: Callback<ReleaseAnswer>): void {
    this.commands.send(
      lua.release,
      this.keysOf(hold).script,
      [hold.id + hold.label, hold.token],
      released,
      callback,
    );
  }

  yield(old: Hold, hold: Hold, ask: AttemptOptions, callback: Callback<YieldAnswer>): void {
    const { script } = this.keysOf(hold);
    const args = [
      old.id + old.label,
      old.token,
      hold.id + hold.label,
      ask.lease,
      ask.passes,
      this.#entryPrefix(hold, ask) + hold.id + hold.label,
      ask.flag,
    ];
    this.commands.send(lua.yield, script, args, this.#yielded, callback);
  }

  /**
   * The answer about the new hold, as for an attempt; or about the old one, if that was not held
   * any more.
   */
  readonly #yielded = (reply: unknown, call: ScriptCall): YieldAnswer => {
    const answer = plain(reply);
    const isPlaced = Array.isArray(answer) && PLACED.has(answer[0]);
    if (!isPlaced) return decodeRelease(answer);
    const placed = whole(answer, readAttempt, Number(call.argv[3]), call.argv[6]) as Placed;
    if (placed.is === "owner" && placed.token < FIRST_TOKEN) throw unexpected(answer);
    this.commands.tellTime(call.keys, placed.at);
    return placed;
  };

  /** The keys of its family of locks. */
  protected keysAt(name: string): LockKeys {
    return this.commands.keys.of(name);
  }

  protected keysOf(hold: { readonly name: string; record?: object | null }): HandoffKeys {
    if (hold.record instanceof HandoffKeys) return hold.record;
    const { name } = hold;
    if (this.#latest?.name !== name) this.#latest = new HandoffKeys(name, this.keysAt(name), this.commands);
    hold.record = this.#latest;
    return this.#latest;
  }

  #entryPrefix(hold: Hold, ask: AttemptOptions): string {
    return entryPrefix(hold, ask, this.#window, "", `${ask.passes}`);
  }

  // ---- the rare commands

  /** Removes a hold from the queue, and from the lock if it owns it. */
  withdraw({ id, name, label = "", entry = "" }: Leavable): Promise<unknown> {
    const args = [id, entry && entry + id + label];
    return this.commands.run(lua.leave, this.keysOf({ name }).script, args, decodeLeft);
  }

  protected override ownerOf({ id, label }: { readonly id: string; readonly label: string }): string {
    return id + label;
  }

  protected override keyOf(name: string): string {
    return this.keysOf({ name }).lock;
  }

  override async renew(holds: readonly Renewal[], timeout: number): Promise<RenewAnswer[]> {
    const made = holds.map((hold) => this.keysOf(hold).script.names);
    const keys = [made[0]?.[CLOCK] ?? "", ...made.flatMap(([lock = "", queue = ""]) => [lock, queue])];
    const args = holds.flatMap(({ id, label, ttl, flag }) => [id + label, ttl, flag ?? "-"]);
    try {
      return await this.commands.run(renewStays, keys, args, decodeStayRenewals, timeout);
    } catch (error) {
      if (!isApart(error)) throw error;
      // That answer says that the hold is ours, and nothing about waiters.
      return super.renew(holds, timeout);
    }
  }

  override readonly releaseAll = (holds: readonly Hold[], isFirst: boolean): Promise<ReleaseAnswer[]> => {
    const made = holds.map((hold) => this.keysOf(hold).script.names);
    const keys = [made[0]?.[CLOCK] ?? "", ...made.flatMap((names) => names.slice(0, CLOCK))];
    const args = holds.flatMap(({ id, label, token }) => [id + label, token]);
    // In Cluster each is sent as text, because each may go to another server.
    const script = isFirst || this.commands.isCluster ? releaseStays : lua.releaseStays;
    return this.commands.run(script, keys, args, decodeReleases);
  };

  override readonly answer = (name: string, nonce: string, is: "busy" | "idle"): void =>
    this.tellAsker(name, nonce, is);

  /**
   * Locks with the same clock share a server: on one server all locks do, in Cluster those with a
   * tag in the prefix.
   */
  serverGroup(name: string): string {
    return this.commands.keys.of(name).clock;
  }

  inspect(name: string, nonce?: string): Promise<Inspected> {
    return this.#inspect(name, nonce === undefined ? [SHOWN_MAX] : [SHOWN_MAX, `?${nonce}`]);
  }

  override holder(name: string): Promise<Inspected> {
    return this.#inspect(name, [0]);
  }

  #inspect(name: string, args: (string | number)[]): Promise<Inspected> {
    return this.commands.run(lua.inspect, this.keysOf({ name }).script, args, decodeHandoffInspection);
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
    const args = [encodeLabel(label), asDigits(meant)];
    return this.commands.run(lua.forceRelease, this.keysOf({ name }).script, args, decodeCount);
  }

  /** Does this id name that holder? */
  protected isOf(holder: Party, id: string): boolean {
    return holder.id === id;
  }
}

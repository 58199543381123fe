import { GRANT_WINDOW, RENEWAL_BATCH } from "../defaults.ts";
import type { Hold } from "../lease/hold.ts";
import type { Renewal } from "../lease/renewer.ts";
import type { Receiver, ScriptKeys } from "../redis/call.ts";
import { handoffLua as lua } from "../redis/lua.generated.ts";
import { encodeLabel } from "../redis/messages.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  decodeForced,
  decodeInspection,
  type Inspected,
  type ReleaseAnswer,
  type RenewAnswer,
  undecoded,
  type YieldAnswer,
} from "../redis/replies.ts";
import type { Script } from "../redis/script.ts";
import type { ScriptRunner } from "../redis/script-runner.ts";
import type { Ask, Leavable, LockKind, Told } from "../waiting/lock-kind.ts";
import { decodeAttempt, decodeRelease, decodeYield } from "./handoff-replies.ts";
import { HoldScripts } from "./renewing.ts";

/** No reply has told the server's time: a command may be executed whenever it comes. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** The keys of a lock. A hold keeps them, as its kind's record, from its first command to its release. */
class HandoffKeys {
  readonly name: string;
  readonly lock: string;
  readonly script: ScriptKeys;

  constructor(name: string, commands: ScriptRunner) {
    const { lock, queue, clients, clock } = commands.keys.of(name);
    this.name = name;
    this.lock = lock;
    this.script = commands.keysOf([lock, queue, clients, clock]);
  }
}

/**
 * The default lock, and its fair variant: waiters queue in Redis, and the unlock makes the next of them the owner. A fair lock
 * has a queue entry for every waiter and no passes, so that the order holds over all processes. Positions of arguments stand
 * here and in the headers under lua/handoff, nowhere else.
 */
export class HandoffLock extends HoldScripts implements LockKind {
  readonly label: "lock" | "fairLock";
  readonly eventKind: "lock" | "fair";
  readonly protocol = "handoff";
  readonly wake: LockKind["wake"];
  readonly localPasses: number;
  readonly batch: number;
  readonly recount = null;
  readonly #window: number;
  /** A lock that is used is used again. */
  #latest: HandoffKeys | null = null;

  constructor(
    commands: ScriptRunner,
    replication: Replication | null,
    isFair: boolean,
    localPasses: number,
    window: number,
  ) {
    super(commands, replication, lua);
    this.label = isFair ? "fairLock" : "lock";
    this.eventKind = isFair ? "fair" : "lock";
    this.wake = { by: "grant", solitary: isFair };
    this.localPasses = localPasses;
    this.batch = commands.isCluster ? 1 : RENEWAL_BATCH;
    this.#window = window;
  }

  // ---- the common way: no promise, and nothing that is made twice

  attempt(hold: Hold, ask: Ask, told: Told<AttemptAnswer>): void {
    const { script } = this.#keysOf(hold);
    const { lease, passes, mode, after } = ask;
    if (mode === "again") {
      const digit = ask.channel?.counted ? "1" : "0";
      const args = [hold.id, lease, passes, hold.entry, ask.entryTtl, digit];
      this.#send(lua.recheck, lua.firstRecheck, script, script, args, lease, told);
      return;
    }
    const notAfter = this.commands.notAfter(script) * 1_000 || NEVER;
    const args = [hold.id, lease, notAfter, passes, mode === "queue" ? this.#entryOf(hold, ask) : ""];
    let keys = script;
    if (after) {
      args.push(after.id);
      keys = this.commands.keysOf([...script.names, this.#keysOf(after).lock]);
    }
    this.#send(lua.acquire, lua.firstAcquire, script, keys, args, lease, told);
  }

  /** `first`: the same behind a look at the rights, for a connection whose rights are not known. `script`: the lock's keys. */
  #send(
    known: Script,
    first: Script,
    script: ScriptKeys,
    keys: ScriptKeys,
    args: (string | number)[],
    lease: number,
    told: Told<AttemptAnswer>,
  ): void {
    const { commands, rights } = this;
    const { isKnown } = rights;
    if (!isKnown) args.push(commands.keys.anyChannel);
    const answer = new TimedAnswer(this, script, lease, decodeAttempt, told, commands.epoch);
    commands.send(isKnown ? known : first, keys, args, answer);
  }

  release(hold: Hold, told: Told<ReleaseAnswer>): void {
    const answer = {
      answered: (reply: unknown) => told.answered(decodeRelease(reply)),
      failed: (error: unknown) => told.failed(error),
    };
    this.commands.send(lua.release, this.#keysOf(hold).script, [hold.id, hold.token], answer);
  }

  yield(old: Hold, hold: Hold, ask: Ask, told: Told<YieldAnswer>): void {
    const { script } = this.#keysOf(hold);
    const { lease, passes } = ask;
    const args = [old.id, old.token, hold.id, lease, passes, this.#entryOf(hold, ask)];
    const answer = new TimedAnswer(this, script, lease, decodeYield, told, null);
    this.commands.send(lua.yield, script, args, answer);
  }

  /** An answer has come. `epoch`: of the connection whose rights it is about; null: it says nothing of them. */
  answered(script: ScriptKeys, epoch: number | null, answer: object): void {
    if ("at" in answer) this.commands.tellTime(script, Number(answer.at));
    if (epoch !== null) this.rights.learn(epoch);
  }

  #keysOf(hold: { readonly name: string; record?: object | null }): HandoffKeys {
    if (hold.record instanceof HandoffKeys) return hold.record;
    const { name } = hold;
    if (this.#latest?.name !== name) this.#latest = new HandoffKeys(name, this.commands);
    hold.record = this.#latest;
    return this.#latest;
  }

  /** A hold's entry in the queue: as it is made, it stays, because every later command names it. */
  #entryOf(hold: Hold, { channel, lease, passes }: Ask): string {
    // RACE: a waiter that hears nothing finds its grant when it looks again. The grant must live until then, however short
    // the waiter's lease.
    const shortest = channel?.isHeard === false ? Math.max(lease, GRANT_WINDOW) : lease;
    const counted = channel?.counted ? 1 : 0;
    hold.entry ||= `${counted} ${Math.min(shortest, this.#window)} ${passes} ${hold.id}`;
    return hold.entry;
  }

  // ---- what is rare

  /** Takes a hold out of the queue, and out of the lock when it owns it. */
  withdraw({ id, name, entry = "" }: Leavable): Promise<unknown> {
    return this.commands.run(lua.leave, this.#keysOf({ name }).script, [id, entry], undecoded);
  }

  renew(holds: readonly Renewal[], timeout: number): Promise<RenewAnswer[]> {
    return this.renewAt(
      holds.map(({ name, id, ttl }) => ({ key: this.#keysOf({ name }).lock, id, ttl })),
      timeout,
    );
  }

  confirm({ name, id }: Leavable, ttl: number, timeout: number): Promise<RenewAnswer> {
    return this.confirmAt(name, this.#keysOf({ name }).lock, id, ttl, timeout);
  }

  /** Locks with the same clock share a slot: all of them on one server, in Cluster those behind a prefix with a tag. */
  together(name: string): string {
    return this.commands.keys.of(name).clock;
  }

  inspect(name: string): Promise<Inspected> {
    return this.commands.run(lua.inspect, this.#keysOf({ name }).script, [], decodeInspection);
  }

  forceRelease(name: string, label: string | null): Promise<boolean> {
    const { script } = this.#keysOf({ name });
    return this.commands.run(lua.forceRelease, script, [encodeLabel(label)], decodeForced);
  }
}

/** Decodes the answer to a script that tells the server's time, and hands it on. */
class TimedAnswer<Answer extends object> implements Receiver {
  readonly #lock: HandoffLock;
  readonly #script: ScriptKeys;
  readonly #lease: number;
  readonly #epoch: number | null;
  readonly #decode: (reply: unknown, lease: number) => Answer;
  readonly #told: Told<Answer>;

  constructor(
    lock: HandoffLock,
    script: ScriptKeys,
    lease: number,
    decode: (reply: unknown, lease: number) => Answer,
    told: Told<Answer>,
    epoch: number | null,
  ) {
    this.#lock = lock;
    this.#script = script;
    this.#lease = lease;
    this.#epoch = epoch;
    this.#decode = decode;
    this.#told = told;
  }

  answered(reply: unknown): void {
    const answer = this.#decode(reply, this.#lease);
    this.#lock.answered(this.#script, this.#epoch, answer);
    this.#told.answered(answer);
  }

  failed(error: unknown): void {
    this.#told.failed(error);
  }
}

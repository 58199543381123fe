import { GRANT_WINDOW } from "../defaults.ts";
import type { Hold } from "../lease/hold.ts";
import { type Call, plain } from "../redis/call.ts";
import { codes, handoffLua as lua } from "../redis/lua.generated.ts";
import { encodeLabel } from "../redis/messages.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  decodeAttempt,
  decodeForced,
  decodeInspection,
  decodeRelease,
  type Inspected,
  type Placed,
  type ReleaseAnswer,
  undecoded,
  type YieldAnswer,
} from "../redis/replies.ts";
import type { ScriptKeys } from "../redis/script.ts";
import type { ScriptRunner } from "../redis/script-runner.ts";
import type { Ask, Leavable, LockKind, Told } from "../waiting/lock-kind.ts";
import { HoldScripts } from "./hold-scripts.ts";

/** No reply has told the server's time: a command may be executed whenever it comes. */
const NEVER = Number.MAX_SAFE_INTEGER;

const PLACED: ReadonlySet<unknown> = new Set([codes.OWNER, codes.MINE, codes.HELD]);

const RELEASED: ReleaseAnswer = { is: "released", clock: 0 };

const released = (reply: unknown): ReleaseAnswer =>
  reply === codes.RELEASED ? RELEASED : decodeRelease(plain(reply));

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
    this.#window = window;
  }

  // ---- the common way: no promise, and nothing that is made twice

  attempt(hold: Hold, ask: Ask, told: Told<AttemptAnswer>): void {
    const { commands } = this;
    const { script } = this.#keysOf(hold);
    const { lease, passes, mode, after } = ask;
    const isKnown = this.knownIn === commands.epoch;
    let lines = isKnown ? lua.acquire : lua.firstAcquire;
    let keys = script;
    let args: (string | number)[];
    if (mode === "again") {
      lines = isKnown ? lua.recheck : lua.firstRecheck;
      args = [hold.id, lease, passes, hold.entry + hold.id, ask.entryTtl, ask.channel?.counted ? "1" : "0"];
    } else {
      const notAfter = commands.notAfter(script) * 1_000 || NEVER;
      args = [hold.id, lease, notAfter, passes, mode === "queue" ? this.#entryOf(hold, ask) : ""];
      if (after) {
        args.push(after.id);
        keys = commands.keysOf([...script.names, this.#keysOf(after).lock]);
      }
    }
    // Behind a look at the rights, for a connection whose rights are not known.
    if (!isKnown) args.push(commands.keys.anyChannel);
    commands.send(lines, keys, args, this.#attempted, told);
  }

  /** Most are told that they own the lock: nothing else is looked at then. */
  readonly #attempted = (reply: unknown, call: Call): AttemptAnswer => {
    if (!Array.isArray(reply) || reply[0] !== codes.OWNER) return this.attempted(reply, call);
    const at = Number(reply[1]);
    this.commands.tellTime(call.keys, at);
    this.knownIn = call.epoch;
    return { is: "owner", at, token: Number(reply[2]), ttl: Number(call.argv[1]), already: false };
  };

  release(hold: Hold, told: Told<ReleaseAnswer>): void {
    this.commands.send(lua.release, this.#keysOf(hold).script, [hold.id, hold.token], released, told);
  }

  yield(old: Hold, hold: Hold, ask: Ask, told: Told<YieldAnswer>): void {
    const { script } = this.#keysOf(hold);
    const args = [old.id, old.token, hold.id, ask.lease, ask.passes, this.#entryOf(hold, ask)];
    this.commands.send(lua.yield, script, args, this.#yielded, told);
  }

  /** For the new hold as of an attempt; or of the old one, when that was not held any more. */
  readonly #yielded = (reply: unknown, call: Call): YieldAnswer => {
    const answer = plain(reply);
    const isPlaced = Array.isArray(answer) && PLACED.has(answer[0]);
    if (!isPlaced) return decodeRelease(answer);
    const placed = decodeAttempt(answer, Number(call.argv[3])) as Placed;
    this.commands.tellTime(call.keys, placed.at);
    return placed;
  };

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
    hold.entry ||= `${counted} ${Math.min(shortest, this.#window)} ${passes} `;
    return hold.entry + hold.id;
  }

  // ---- what is rare

  /** Takes a hold out of the queue, and out of the lock when it owns it. */
  withdraw({ id, name, entry = "" }: Leavable): Promise<unknown> {
    return this.commands.run(lua.leave, this.#keysOf({ name }).script, [id, entry && entry + id], undecoded);
  }

  protected override keyOf(name: string): string {
    return this.#keysOf({ name }).lock;
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

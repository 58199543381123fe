import type { LockKeys } from "../keys.ts";
import type { Hold } from "../lease/hold.ts";
import { codes, handoffLua as lua } from "../redis/lua.generated.ts";
import { encodeLabel } from "../redis/messages.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  decodeForced,
  decodeInspection,
  fields,
  type Inspected,
  type Placed,
  type ReleaseAnswer,
  ttl,
  undecoded,
  type YieldAnswer,
} from "../redis/replies.ts";
import type { ScriptRunner } from "../redis/script-runner.ts";
import { HoldScripts } from "./renewing.ts";

/** A lock, and the hold that must own it, or nothing is done. */
export interface After {
  readonly lock: string;
  readonly id: string;
}

/** Makes a hold's entry in the queue: as it is made, it stays, because every later command names it. */
export const entryOf = (counted: boolean, grantTtl: number, passes: number, hold: string): string =>
  `${counted ? 1 : 0} ${grantTtl} ${passes} ${hold}`;

const all = (keys: LockKeys): string[] => [keys.lock, keys.queue, keys.clients, keys.clock];

/** The hand-off protocol's scripts as typed calls. Positions stand here and in the headers under lua/handoff, nowhere else. */
export class HandoffScripts extends HoldScripts {
  constructor(commands: ScriptRunner, replication: Replication | null) {
    super(commands, replication, lua);
  }

  /** `entry`: to queue with; "": it only tries. `after`: of the same server or slot, and so of the same clock. */
  acquire(
    keys: LockKeys,
    hold: string,
    { lease, passes }: { lease: number; passes: number },
    entry: string,
    after: After | null = null,
  ): Promise<AttemptAnswer> {
    const args = [hold, lease, this.#notAfter(keys.clock), passes, entry];
    if (after) args.push(after.id);
    if (!this.rights.isKnown) args.push(this.commands.keys.anyChannel);
    return this.commands.run(
      this.rights.isKnown ? lua.acquire : lua.firstAcquire,
      after ? [...all(keys), after.lock] : all(keys),
      args,
      this.#learning(keys, (reply) => decodeAttempt(reply, lease)),
    );
  }

  /**
   * Looks again, and keeps all places of the client for `entryTtl` ms. `counted`: whether the number of receivers of its
   * channel proves anything, and it is heard.
   */
  recheck(
    keys: LockKeys,
    { id, entry }: Hold,
    { lease, passes, entryTtl }: { lease: number; passes: number; entryTtl: number },
    counted: boolean,
  ): Promise<AttemptAnswer> {
    const args = [id, lease, passes, entry, entryTtl, counted ? "1" : "0"];
    if (!this.rights.isKnown) args.push(this.commands.keys.anyChannel);
    return this.commands.run(
      this.rights.isKnown ? lua.recheck : lua.firstRecheck,
      all(keys),
      args,
      this.#learning(keys, (reply) => decodeAttempt(reply, lease)),
    );
  }

  release(keys: LockKeys, hold: string, token: number): Promise<ReleaseAnswer> {
    return this.commands.run(lua.release, all(keys), [hold, token], decodeRelease);
  }

  yield(
    keys: LockKeys,
    old: { id: string; token: number },
    hold: Hold,
    { lease, passes }: { lease: number; passes: number },
  ): Promise<YieldAnswer> {
    const args = [old.id, old.token, hold.id, lease, passes, hold.entry];
    const decode = (reply: unknown): YieldAnswer => decodeYield(reply, lease);
    return this.commands.run(lua.yield, all(keys), args, this.commands.timed(keys.clock, decode));
  }

  /** Takes a hold out of the queue, and out of the lock when it owns it. */
  leave(keys: LockKeys, hold: string, entry: string): Promise<unknown> {
    return this.commands.run(lua.leave, all(keys), [hold, entry], undecoded);
  }

  inspect(keys: LockKeys): Promise<Inspected> {
    return this.commands.run(lua.inspect, all(keys), [], decodeInspection);
  }

  forceRelease(keys: LockKeys, label: string | null): Promise<boolean> {
    return this.commands.run(lua.forceRelease, all(keys), [encodeLabel(label)], decodeForced);
  }

  /** In µs of the server's time; never, while no reply has told that. */
  #notAfter(clock: string): number {
    return this.commands.notAfter(clock) * 1_000 || Number.MAX_SAFE_INTEGER;
  }

  /** The answer tells the server's time, and that no right is missing. */
  #learning<T extends object>(keys: LockKeys, decode: (reply: unknown) => T): (reply: unknown) => T {
    return this.rights.learning(this.commands.timed(keys.clock, decode));
  }
}

// What the scripts of the hand-off protocol answer, decoded. The first item is a code of lua/constants.lua, or the reply is
// that code. ioredis with `stringNumbers` makes strings of integers.

const { OWNER, MINE, HELD, GONE, STALE, RELEASED, TAKEN, BLOCKED } = codes;

/** `lease`: that was asked for. */
function decodeAttempt(reply: unknown, lease: number): AttemptAnswer {
  const [code, micros] = fields(reply);
  const placed = decodePlaced(reply, lease);
  if (placed) return placed;
  const at = Number(micros);
  switch (Number(code)) {
    case GONE:
      return { is: "gone", at };
    case STALE:
      return { is: "stale", at };
    case BLOCKED:
      return { is: "blocked", at };
  }
  throw unexpected(reply);
}

function decodeYield(reply: unknown, lease: number): YieldAnswer {
  return (Array.isArray(reply) && decodePlaced(reply, lease)) || decodeRelease(reply);
}

function decodePlaced(reply: unknown, lease: number): Placed | null {
  const [code, micros, first, second] = fields(reply);
  const at = Number(micros);
  switch (Number(code)) {
    case OWNER:
      return { is: "owner", at, token: Number(first), ttl: lease, already: false };
    case MINE:
      return { is: "owner", at, token: Number(first), ttl: ttl(second), already: true };
    case HELD:
      return { is: "held", at, ttl: ttl(first), position: Number(second) < 0 ? null : Number(second) };
  }
  return null;
}

function decodeRelease(reply: unknown): ReleaseAnswer {
  const [code, clock] = Array.isArray(reply) ? reply : [reply, 0];
  switch (Number(code)) {
    case RELEASED:
      return { is: "released", clock: 0 };
    case TAKEN:
      return { is: "taken", clock: 0 };
    case GONE:
      return { is: "gone", clock: Number(clock) || 0 };
  }
  throw unexpected(reply);
}

const unexpected = (reply: unknown): TypeError => new TypeError(`unexpected reply ${JSON.stringify(reply)}`);

import type { LockKeys } from "../keys.ts";
import { handoffLua as lua } from "../redis/lua.generated.ts";
import { encodeLabel } from "../redis/messages.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  decodeAttempt,
  decodeForced,
  decodeInspection,
  decodeRelease,
  decodeYield,
  type Inspected,
  type ReleaseAnswer,
  undecoded,
  type YieldAnswer,
} from "../redis/replies.ts";
import type { ScriptRunner } from "../redis/script-runner.ts";
import { HoldScripts } from "./renewing.ts";

/** What acquire and yield say about a queue entry. */
export interface Entry {
  /** ms until the entry may be skipped. */
  readonly patience: number;
  /** Tokens to reserve for passes. */
  readonly passes: number;
  /** ms that a grant by message lives. */
  readonly grantTtl: number;
  /** Where the client listens; null: nowhere yet. */
  readonly channel: string | null;
  /** False: the number of receivers of its channel proves nothing. */
  readonly counted: boolean;
}

/** A lock, and the hold that must own it, or nothing is done. */
export interface After {
  readonly lock: string;
  readonly id: string;
}

/** Lua reads integers; a window of Infinity never comes here, because it was cut to the lease. */
const pack = ({ grantTtl, passes, counted, channel }: Entry): string =>
  `${grantTtl} ${passes} ${counted ? 1 : 0} ${channel ?? ""}`;

const all = (keys: LockKeys): string[] => [keys.lock, keys.queue, keys.waiters, keys.clock];

/** The hand-off protocol's scripts as typed calls. Positions stand here and in the headers under lua/handoff, nowhere else. */
export class HandoffScripts extends HoldScripts {
  constructor(commands: ScriptRunner, replication: Replication | null) {
    super(commands, replication, lua);
  }

  /** Few long arguments rather than many short ones: each costs the client and the server about a third of a µs. */
  acquire(
    keys: LockKeys,
    hold: string,
    ask: { lease: number; mode: "try" | "queue" | "again"; others: readonly string[] },
    entry: Entry,
    after: After | null,
  ): Promise<AttemptAnswer> {
    const request = `${ask.mode} ${ask.lease} ${entry.patience} ${this.commands.notAfter(keys.clock)} ${this.#unlooked}`;
    const args = [hold, request, pack(entry)];
    return this.commands.run(
      lua.acquire,
      after ? [...all(keys), after.lock] : all(keys),
      after ? [...args, after.id] : [...args, ...ask.others],
      this.rights.learning(this.commands.timed(keys.clock, decodeAttempt)),
    );
  }

  release(keys: LockKeys, hold: string, token: number): Promise<ReleaseAnswer> {
    return this.commands.run(lua.release, all(keys), [hold, token], decodeRelease);
  }

  yield(
    keys: LockKeys,
    old: { id: string; token: number },
    hold: string,
    lease: number,
    entry: Entry,
  ): Promise<YieldAnswer> {
    const args = [old.id, hold, `${old.token} ${lease} ${entry.patience}`, pack(entry)];
    return this.commands.run(lua.yield, all(keys), args, this.commands.timed(keys.clock, decodeYield));
  }

  /** Takes a hold out of the queue, and out of the lock when it owns it. */
  leave(keys: LockKeys, hold: string): Promise<unknown> {
    return this.commands.run(lua.leave, all(keys), [hold], undecoded);
  }

  inspect(keys: LockKeys): Promise<Inspected> {
    return this.commands.run(lua.inspect, all(keys), [], decodeInspection);
  }

  forceRelease(keys: LockKeys, label: string | null): Promise<boolean> {
    return this.commands.run(lua.forceRelease, all(keys), [encodeLabel(label)], decodeForced);
  }

  /** Where the rights of the connection's user were not looked at yet: a channel such as it must publish to. */
  get #unlooked(): string {
    return this.rights.isKnown ? "" : this.commands.keys.anyChannel;
  }
}

import type { LockKeys } from "../keys.ts";
import {
  type AttemptAnswer,
  decodeAttempt,
  decodeForced,
  decodeInspection,
  decodeRelease,
  decodeRenewals,
  decodeYield,
  type Inspection,
  type ReleaseAnswer,
  type RenewAnswer,
  type YieldAnswer,
} from "./answers.ts";
import type { Commands } from "./commands.ts";
import { handoffLua as lua } from "./lua.generated.ts";

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

/** Lua reads integers; a window of Infinity never comes here, because it was cut to the lease. */
const pack = (entry: Entry): string =>
  entry.channel === null ? "" : `${entry.grantTtl} ${entry.passes} ${entry.counted ? 1 : 0} ${entry.channel}`;

const all = (keys: LockKeys): string[] => [keys.lock, keys.queue, keys.waiters, keys.clock];

/** The hand-off protocol's scripts as typed calls. Positions stand here and in the headers under lua/handoff, nowhere else. */
export class HandoffScripts {
  readonly #commands: Commands;

  constructor(commands: Commands) {
    this.#commands = commands;
  }

  async acquire(
    keys: LockKeys,
    hold: string,
    ask: { lease: number; mode: "try" | "queue" | "again"; others: readonly string[] },
    entry: Entry,
  ): Promise<AttemptAnswer> {
    const packed = ask.mode === "try" ? "" : pack(entry);
    const channel = entry.channel ?? "";
    const notAfter = this.#commands.notAfter();
    const args = [
      hold,
      ask.lease,
      notAfter,
      ask.mode,
      entry.patience,
      entry.passes,
      channel,
      packed,
      ...ask.others,
    ];
    return this.#timed(decodeAttempt(await this.#commands.run(lua.acquire, all(keys), args)));
  }

  async release(keys: LockKeys, hold: string, token: number): Promise<ReleaseAnswer> {
    return this.#timed(decodeRelease(await this.#commands.run(lua.release, all(keys), [hold, token])));
  }

  async yield(
    keys: LockKeys,
    old: { id: string; token: number },
    hold: string,
    lease: number,
    entry: Entry,
  ): Promise<YieldAnswer> {
    const args = [
      old.id,
      old.token,
      hold,
      lease,
      entry.patience,
      entry.passes,
      entry.channel ?? "",
      pack(entry),
    ];
    return this.#timed(decodeYield(await this.#commands.run(lua.yield, all(keys), args)));
  }

  /** Takes a hold out of the queue, and out of the lock when it owns it. */
  async leave(keys: LockKeys, hold: string): Promise<void> {
    await this.#commands.run(lua.leave, all(keys), [hold]);
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

  async inspect(keys: LockKeys): Promise<Inspection> {
    return decodeInspection(await this.#commands.run(lua.inspect, all(keys), []));
  }

  async forceRelease(keys: LockKeys): Promise<boolean> {
    return decodeForced(await this.#commands.run(lua.forceRelease, all(keys), []));
  }

  #timed<T extends { readonly at: number }>(answer: T): T {
    this.#commands.sawServerTime(answer.at);
    return answer;
  }
}

/** Publishes to a channel from a script and returns the number of receivers. Rejects when PUBLISH is refused. */
export async function publishProbe(commands: Commands, channel: string, message: string): Promise<number> {
  return Number(await commands.run(lua.probe, [], [channel, message]));
}

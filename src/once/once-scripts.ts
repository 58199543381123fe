import type { Interval } from "../api/once.ts";
import type { Hold } from "../core/lease/hold.ts";
import type { Renewal, Renewer } from "../core/lease/renewer.ts";
import { RENEWAL_BATCH } from "../defaults.ts";
import type { Commands } from "../redis/commands.ts";
import { unexpected } from "../redis/fields.ts";
import { onceLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import type { ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";

/** The answer to an attempt to begin. `at` and `begin` are the server's time in µs. */
export type BeginAnswer =
  | { readonly is: "ours"; readonly at: number; readonly begin: number; readonly ttl: number }
  | { readonly is: "running" | "done"; readonly remaining: number }
  | { readonly is: "stale" };

/** No reply has given the server's time yet: a command may run whenever it arrives. */
const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * The commands for functions that run once per interval. Positions of arguments are defined only
 * here and in the headers under lua/once.
 */
export class OnceScripts implements Renewer {
  readonly protocol = "once";
  readonly batch: number;
  readonly #commands: Commands;
  readonly #replication: Replication | null;

  constructor(commands: Commands, replication: Replication | null) {
    this.#commands = commands;
    this.#replication = replication;
    this.batch = commands.isCluster ? 1 : RENEWAL_BATCH;
  }

  /**
   * When an interval ends that began then, on the monotonic clock, in ms of the server's time: early
   * rather than late. Infinite: the server has not reported its time yet.
   */
  endOf(name: string, { every, aligned }: Interval, since: number): number {
    const now = this.#commands.timeAt(this.#keyOf(name));
    if (Number.isNaN(now)) return Number.POSITIVE_INFINITY;
    // RACE: rounded up, it could be in the next slot, in which a late copy would begin a turn. Any
    // earlier than it is, a query that begins a slot would count for the last one, and begin nothing.
    const began = Math.floor(now - (clocks.mono.now() - since));
    return aligned ? began - (began % every) + every : began + every;
  }

  /**
   * `before`: in ms of the server's time. From then on it begins nothing, and only tells whether its
   * turn runs.
   */
  async begin(hold: Hold, interval: Interval, timeout: number, before: number): Promise<BeginAnswer> {
    const { every, lease, onCrash: crash, aligned } = interval;
    const key = this.#keyOf(hold.name);
    const latest = this.#commands.notAfter(key, timeout);
    const until = latest === 0 ? NEVER : Math.min(latest, before) * 1_000;
    const args = { hold: hold.id, lease, every, aligned: aligned ? 1 : 0, crash, before: until };
    const answer = await this.#commands.run(lua.begin, [key], args, timeout);
    const { is, at } = answer;
    // A turn begins at the time of its answer; a copy of the command finds an earlier one.
    if (is === "owner" && answer.begin !== at) throw unexpected(answer);
    this.#commands.tellTime(key, at);
    switch (is) {
      case "stale":
        return { is };
      case "held":
        return { is: "running", remaining: answer.ttl };
      case "gone":
        return { is: "done", remaining: answer.ttl };
    }
    return { is: "ours", at, begin: answer.begin, ttl: answer.ttl };
  }

  async renew(holds: readonly Renewal[], timeout: number): Promise<readonly RenewAnswer[]> {
    const keys = holds.map(({ hold }) => this.#keyOf(hold.name));
    const args = holds.map(({ hold, ttl }) => ({ hold: hold.id, ttl }));
    return (await this.#commands.run(lua.renew, keys, args, timeout)).all;
  }

  /**
   * Resolves when as many replicas as the client wants have the turn. Null: the client wants none.
   */
  async confirm({ id, name, ttl }: Hold, timeout: number): Promise<RenewAnswer | null> {
    if (!this.#replication) return null;
    const key = this.#keyOf(name);
    // One ms more than it can have: without a write, WAIT would have nothing to wait for.
    const args = [{ hold: id, ttl: ttl + 1 }];
    return this.#replication.confirm(name, key, async (commands) => {
      const { all } = await commands.run(lua.renew, [key], args, timeout);
      if (all.length !== 1) throw unexpected(all);
      return all[0] as RenewAnswer;
    });
  }

  /** `begin`: from its answer, in µs. */
  end({ id, name }: Hold, { every, aligned }: Interval, begin: number): Promise<ReleaseAnswer> {
    const args = { hold: id, every, aligned: aligned ? 1 : 0, begin };
    return this.#commands.run(lua.end, [this.#keyOf(name)], args);
  }

  /** Withdraws a turn whose body never ran; safe at any time, any number of times. */
  withdraw({ id, name }: { readonly id: string; readonly name: string }): Promise<unknown> {
    return this.#commands.run(lua.leave, [this.#keyOf(name)], { hold: id });
  }

  #keyOf(name: string): string {
    return this.#commands.keys.ofOnce(name);
  }
}

import type { Redis } from "ioredis";
import { codes } from "../../src/redis/codes.generated.ts";
import { Keys, type LockKeys } from "../../src/redis/keys.ts";
import { until } from "./until.ts";

/**
 * A lock as somebody sees it in Redis who neither holds it nor waits for it. Asks with plain
 * commands only.
 */
export class Onlooker {
  readonly name: string;
  readonly keys: LockKeys;
  readonly #redis: Redis;

  constructor(redis: Redis, name: string, isCluster = false) {
    this.#redis = redis;
    this.name = name;
    this.keys = new Keys("", isCluster).of(name);
  }

  /** The hold that owns it; "" when it is free. */
  async holder(): Promise<string> {
    return (await this.#redis.get(this.keys.lock))?.split(" ")[3] ?? "";
  }

  /** ms until it is free; negative as PTTL says it. */
  left(): Promise<number> {
    return this.#redis.pttl(this.keys.lock);
  }

  /** The waiting holds, the next one first. */
  waiters(): Promise<string[]> {
    return this.#redis
      .zrange(this.keys.queue, "0", "-1")
      .then((entries) => entries.map((entry) => entry.split(" ")[3] ?? ""));
  }

  /** The server's time in ms until which the one at this place is waited for. Every re-check moves it. */
  async patience(place = 0): Promise<number> {
    const { ticket, kept } = await this.#entry(place);
    return Math.max(ticket + codes.ENTRY_TTL, kept.until) / 1_000;
  }

  /** Is the next one skipped when a message to it has no receiver? */
  async counts(): Promise<boolean> {
    const { digit, kept } = await this.#entry(0);
    return (kept.digit ?? digit) === "1";
  }

  /** Resolves when the one at this place has looked again. */
  async lookedAt(place = 0): Promise<void> {
    const kept = async (): Promise<number> => (await this.#entry(place)).kept.until;
    const before = await kept();
    await until(async () => (await kept()) !== before, { what: "a re-check" });
  }

  /** What the entry at this place says, and what the last re-check of its client has said. Times are µs. */
  async #entry(place: number) {
    const { queue, clients } = this.keys;
    const [entry = "", ticket = "0"] = await this.#redis.zrange(queue, place, `${place}`, "WITHSCORES");
    const channel = entry.split(" ")[3]?.slice(0, -22) ?? "";
    const [zero, one] = await Promise.all(
      ["0", "1"].map((digit) => this.#redis.zscore(clients, digit + channel)),
    );
    const digit = zero ? "0" : one ? "1" : null;
    return { digit: entry[0], ticket: Number(ticket), kept: { digit, until: Number(zero ?? one ?? 0) } };
  }

  /** Resolves when so many wait. */
  queued(count: number): Promise<unknown> {
    return until(async () => (await this.#redis.zcard(this.keys.queue)) === count, {
      what: `${count} waiting in Redis`,
    });
  }

  /** Resolves when nobody holds it and nobody waits. No entry goes by itself within this time. */
  gone(): Promise<unknown> {
    const { lock, queue } = this.keys;
    return until(async () => (await this.#redis.exists(lock, queue)) === 0, {
      timeout: 4_000,
      what: `nothing to be left of ${this.name}`,
    });
  }
}

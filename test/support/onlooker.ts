import type { Redis } from "ioredis";
import { codes } from "../../src/redis/codes.generated.ts";
import { Keys, type LockKeys } from "../../src/redis/keys.ts";
import { until } from "./until.ts";

interface OnlookerOptions {
  isCluster?: boolean;
  clientsRead?: () => Promise<unknown>;
}

/**
 * A lock as seen in Redis by an outsider that neither holds it nor waits for it. Uses plain
 * commands only.
 */
export class Onlooker {
  readonly name: string;
  readonly keys: LockKeys;
  readonly #redis: Redis;
  readonly #clientsRead: () => Promise<unknown>;

  /**
   * `clientsRead` resolves when the clients under test have read the answers to all that they sent:
   * a fault may follow what is awaited here, and Redis knows of a place before its client does.
   */
  constructor(
    redis: Redis,
    name: string,
    { isCluster = false, clientsRead = async () => {} }: OnlookerOptions = {},
  ) {
    this.#redis = redis;
    this.#clientsRead = clientsRead;
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

  /**
   * The server's time in ms until which the waiter at this place is waited for. Every re-check
   * moves it.
   */
  async patience(place = 0): Promise<number> {
    const { ticket, kept } = await this.#entry(place);
    return Math.max(ticket + codes.ENTRY_TTL, kept.until) / 1_000;
  }

  /** Is the next waiter skipped if a message to it has no receiver? */
  async counts(): Promise<boolean> {
    const { digit, kept } = await this.#entry(0);
    return (kept.digit ?? digit) === "1";
  }

  /** Resolves when the waiter at this place has re-checked. */
  async lookedAt(place = 0): Promise<void> {
    const kept = async (): Promise<number> => (await this.#entry(place)).kept.until;
    const before = await kept();
    await until(async () => (await kept()) !== before, { what: "a re-check" });
    await this.#clientsRead();
  }

  /** The entry at this place, and the report of its client's last re-check. Times are µs. */
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

  /** Resolves when this many wait. */
  async queued(count: number, timeout?: number): Promise<void> {
    await until(async () => (await this.#redis.zcard(this.keys.queue)) === count, {
      what: `${count} waiting in Redis`,
      ...(timeout === undefined ? {} : { timeout }),
    });
    await this.#clientsRead();
  }

  /** Resolves when no client holds it or waits for it. No entry expires within this time. */
  gone(): Promise<unknown> {
    const { lock, queue } = this.keys;
    return until(async () => (await this.#redis.exists(lock, queue)) === 0, {
      timeout: 4_000,
      what: `nothing to be left of ${this.name}`,
    });
  }
}

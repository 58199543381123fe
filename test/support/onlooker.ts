import type { Redis } from "ioredis";
import { Keys, type LockKeys } from "../../src/keys.ts";
import { until } from "./until.ts";

/** A lock as somebody sees it in Redis who neither holds it nor waits for it. Asks with plain commands only. */
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
    return (await this.#redis.get(this.keys.lock))?.split(" ")[0] ?? "";
  }

  /** ms until it is free; negative as PTTL says it. */
  left(): Promise<number> {
    return this.#redis.pttl(this.keys.lock);
  }

  /** The waiting holds, the next one first. */
  waiters(): Promise<string[]> {
    return this.#redis.zrange(this.keys.queue, "0", "-1");
  }

  /** The server's time in ms until which the one at this place is waited for. Every re-check moves it. */
  async patience(place = 0): Promise<number> {
    const [deadline = "0"] = await this.#entry(place);
    return Number.parseInt(deadline, 10);
  }

  /** Is the next one skipped when a message to it has no receiver? */
  async counts(): Promise<boolean> {
    const [, , , counts] = await this.#entry(0);
    return counts === "1";
  }

  /** Resolves when the one at this place has looked again. */
  async lookedAt(place = 0): Promise<void> {
    const before = await this.patience(place);
    await until(async () => (await this.patience(place)) !== before, { what: "a re-check" });
  }

  async #entry(place: number): Promise<string[]> {
    const hold = (await this.waiters())[place] ?? "";
    return (await this.#redis.hget(this.keys.waiters, hold))?.split(" ") ?? [];
  }

  /** Resolves when so many wait. */
  queued(count: number): Promise<unknown> {
    return until(async () => (await this.#redis.zcard(this.keys.queue)) === count, {
      what: `${count} waiting in Redis`,
    });
  }

  /** Resolves when nobody holds it and nobody waits. No entry goes by itself within this time. */
  gone(): Promise<unknown> {
    const { lock, queue, waiters } = this.keys;
    return until(async () => (await this.#redis.exists(lock, queue, waiters)) === 0, {
      timeout: 4_000,
      what: `nothing to be left of ${this.name}`,
    });
  }
}

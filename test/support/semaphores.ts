import { Redis } from "ioredis";
import { Events } from "../../src/events.ts";
import { CountedScripts } from "../../src/kinds/counted-scripts.ts";
import { SemaphoreKind } from "../../src/kinds/semaphore.ts";
import { type Lease, newLease } from "../../src/locks/lease.ts";
import { ScriptRunner } from "../../src/redis/script-runner.ts";
import { Subscriber } from "../../src/redis/subscriber.ts";
import { newClientId } from "../../src/util/random.ts";
import type { LockKind } from "../../src/waiting/lock-kind.ts";
import { LockManager } from "../../src/waiting/lock-manager.ts";

/** One client with the waiting engine of the package, as it takes permits: the package does not offer them yet. */
export class Semaphores {
  readonly redis: Redis;
  readonly scripts: CountedScripts;
  readonly manager: LockManager;
  readonly #kinds = new Map<string, LockKind>();

  constructor(url: string) {
    const window = 3_000;
    const redis = new Redis(url, { retryStrategy: () => 20 });
    redis.on("error", () => {});
    const commands = new ScriptRunner(redis, 5_000);
    this.redis = redis;
    this.scripts = new CountedScripts(commands, null, "semaphore", window);
    this.manager = new LockManager(
      commands,
      (audience) => new Subscriber({ redis, isSharded: false, ...audience }, commands),
      newClientId(),
      window,
      new Events(),
    );
  }

  /** `wait`: 0 = it does not wait. A lease that is not given is 30 s, and is renewed. */
  acquire(
    name: string,
    permits: number,
    units = 1,
    {
      wait = Number.POSITIVE_INFINITY,
      lease,
      signal,
    }: { wait?: number; lease?: number; signal?: AbortSignal } = {},
  ): Promise<Lease | null> {
    const key = `${permits} ${units}`;
    const kind = this.#kinds.get(key) ?? new SemaphoreKind(this.scripts, units, permits);
    this.#kinds.set(key, kind);
    const terms = {
      lease: lease ?? 30_000,
      watchdog: lease === undefined,
      maxHold: Number.POSITIVE_INFINITY,
      linger: 0,
    };
    return this.manager.enter(kind, name, { terms, wait, signal }, newLease);
  }

  async close(): Promise<void> {
    await this.manager.close(0);
    this.redis.disconnect();
  }
}

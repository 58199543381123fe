import type { LockClient, MultiLease } from "holdfast";
import type { Redis } from "ioredis";
import { type LockOptions, Mutex } from "redis-semaphore";
import { inQueue, leave, stay } from "./queue-in-front.js";

/** The mutex of redis-semaphore that waits in Holdfast's queue. It tries the old lock once at a time. */
export class QueuedMutex extends Mutex {
  readonly #locks: LockClient;
  readonly #name: string;
  readonly #wait: number;
  #place: MultiLease | null = null;

  constructor(locks: LockClient, redis: Redis, name: string, options: LockOptions = {}) {
    super(redis, name, { ...options, acquireAttemptsLimit: 1 });
    const { acquireTimeout = 10_000, acquireAttemptsLimit = 0 } = options;
    this.#locks = locks;
    this.#name = name;
    this.#wait = acquireAttemptsLimit === 1 ? 0 : acquireTimeout;
  }

  protected override async _acquire(signal?: AbortSignal): Promise<boolean> {
    const terms = { ttl: this._acquireOptions.lockTimeout, wait: this.#wait, signal };
    const attempt = async () => (await super._acquire(signal)) || null;
    const got = await inQueue(this.#locks, [this.#name], terms, attempt, () => super._release());
    this.#place = got?.place ?? null;
    return got !== null;
  }

  protected override async _refresh(): Promise<boolean> {
    if (!(await super._refresh())) return leave(this.#place).then(() => false);
    const stayed = stay(this.#place, this._acquireOptions.lockTimeout);
    return stayed.then(() => true).catch(() => false); // false: the mutex is lost
  }

  protected override async _release(): Promise<void> {
    try {
      await super._release();
    } finally {
      await leave(this.#place);
    }
  }
}

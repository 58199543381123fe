import type { LockClient, MultiLease } from "holdfast";
import Redlock, { ExecutionError, type ExecutionResult, type Lock, type Settings } from "redlock";
import { inQueue, leave, stay } from "./queue-in-front.js";

/** Redlock 5 that waits in Holdfast's queue. It tries the old lock once at a time. */
export class QueuedRedlock5 extends Redlock {
  readonly #locks: LockClient;
  readonly #places = new WeakMap<Lock, MultiLease>();

  constructor(locks: LockClient, ...old: ConstructorParameters<typeof Redlock>) {
    super(...old);
    this.#locks = locks;
  }

  override async acquire(names: string[], ttl: number, settings: Partial<Settings> = {}): Promise<Lock> {
    const { retryCount, retryDelay } = { ...this.settings, ...settings };
    const wait = retryCount === -1 ? Number.POSITIVE_INFINITY : retryCount * retryDelay;
    let refusal: unknown = new ExecutionError(`'${names}' is busy, and its queue is too long`, []);
    const attempt = () =>
      super.acquire(names, ttl, { ...settings, retryCount: 0 }).catch((error: unknown) => {
        refusal = error;
        return null;
      });
    const got = await inQueue(this.#locks, names, { ttl, wait }, attempt, (lock) => super.release(lock));
    if (!got) throw refusal;
    this.#places.set(got.old, got.place);
    return got.old;
  }

  override async extend(lock: Lock, ttl: number, settings?: Partial<Settings>): Promise<Lock> {
    const longer = await super.extend(lock, ttl, settings);
    const place = this.#places.get(lock);
    if (place) {
      this.#places.set(longer, place);
      await stay(place, ttl);
    }
    return longer;
  }

  override async release(lock: Lock, settings?: Partial<Settings>): Promise<ExecutionResult> {
    try {
      return await super.release(lock, settings);
    } finally {
      await leave(this.#places.get(lock));
    }
  }
}

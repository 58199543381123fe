import Bluebird from "bluebird";
import type { LockClient, MultiLease } from "holdfast";
import Redlock from "redlock";
import { inQueue, leave, stay } from "./queue-in-front.js";

type Lock = Redlock.Lock;
type Options = Redlock.Options;
type Callback<T> = Redlock.Callback<T>;

/** The method that all others of redlock 4.2 call. `@types/redlock` does not have it. */
interface Locking {
  _lock(
    resource: string | string[],
    value: string | null,
    ttl: number,
    options: Options | Callback<Lock>,
    callback?: Callback<Lock>,
  ): Bluebird<Lock>;
}

const Old = Redlock as unknown as new (...old: ConstructorParameters<typeof Redlock>) => Redlock & Locking;

/** Redlock 4.2 that waits in Holdfast's queue. It tries the old lock once at a time. */
export class QueuedRedlock4 extends Old {
  readonly #locks: LockClient;
  readonly #options: Options;
  readonly #places = new WeakMap<Lock, MultiLease>();

  constructor(locks: LockClient, clients: readonly unknown[], options: Options = {}) {
    super(clients as Redlock.CompatibleRedisClient[], { ...options, retryCount: 0 });
    this.#locks = locks;
    this.#options = { retryCount: 10, retryDelay: 200, ...options };
  }

  override _lock(
    resource: string | string[],
    value: string | null,
    ttl: number,
    options: Options | Callback<Lock>,
    callback?: Callback<Lock>,
  ): Bluebird<Lock> {
    if (typeof options === "function") return this._lock(resource, value, ttl, {}, options);
    const once = () => super._lock(resource, value, ttl, {});
    const task = value === null ? this.#acquire([resource].flat(), ttl, options, once) : once();
    return Bluebird.resolve(task).nodeify(callback);
  }

  async #acquire(names: string[], ttl: number, options: Options, once: () => Bluebird<Lock>): Promise<Lock> {
    const { retryCount = 0, retryDelay = 0 } = { ...this.#options, ...options };
    const wait = retryCount === -1 ? Number.POSITIVE_INFINITY : retryCount * retryDelay;
    let refusal: unknown = new Redlock.LockError(`'${names}' is busy, and its queue is too long`);
    const refused = (error: unknown): null => {
      refusal = error;
      return null;
    };
    const attempt = () => once().catch(refused);
    const got = await inQueue(this.#locks, names, { ttl, wait }, attempt, (lock) => super.unlock(lock));
    if (!got) throw refusal;
    this.#places.set(got.old, got.place);
    return got.old;
  }

  override extend(lock: Lock, ttl: number, callback?: Callback<Lock>): Bluebird<Lock> {
    const extended = super.extend(lock, ttl).tap(() => stay(this.#places.get(lock), ttl));
    return extended.nodeify(callback);
  }

  override unlock(lock: Lock, callback?: Callback<void>): Bluebird<void> {
    const unlocked = super.unlock(lock).finally(() => leave(this.#places.get(lock)));
    return unlocked.nodeify(callback);
  }
}

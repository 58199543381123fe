import type {
  ForceUnlockOptions,
  Inspection,
  Lock,
  LockClient,
  PassingOptions,
  PermitLease,
  ReentranceOptions,
  Semaphore,
  UnfencedLease,
} from "../../src/index.ts";
import { redissonFencedLock, redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";

/**
 * The kinds of locks; `permit`: one permit of a semaphore that has one; `readLock`, `writeLock`:
 * the two locks of a read-write lock.
 */
export type Maker =
  | "lock"
  | "fairLock"
  | "redissonLock"
  | "redissonFencedLock"
  | "spinLock"
  | "permit"
  | "readLock"
  | "writeLock";

/**
 * The lock with this name, of any kind; not every kind has every option. Leases of a
 * `redissonLock`, a `spinLock` and a `permit` have no token.
 */
export function lockOf(
  locks: LockClient,
  kind: Maker,
  name: string,
  options?: PassingOptions & ReentranceOptions,
): Lock {
  return unfencedOf(locks, kind, name, options) as Lock;
}

function unfencedOf(
  locks: LockClient,
  kind: Maker,
  name: string,
  options?: PassingOptions & ReentranceOptions,
): Lock<UnfencedLease> {
  if (kind === "readLock") return locks.readWriteLock(name, options).read;
  if (kind === "writeLock") return locks.readWriteLock(name, options).write;
  if (kind === "permit") return new Permit(locks.semaphore(name, { permits: 1 }));
  if (kind === "redissonLock") return redissonLock(locks, name, options);
  if (kind === "redissonFencedLock") return redissonFencedLock(locks, name, options);
  if (kind === "spinLock") return spinLock(locks, name, options);
  return kind === "fairLock" ? locks.fairLock(name, options) : locks.lock(name, options);
}

/**
 * For a readers' shared hold: the write lock, which they exclude, except for inspecting it and
 * force-releasing it.
 */
export function opponentOf(locks: LockClient, name: string): Lock {
  const { read, write } = locks.readWriteLock(name);
  const LOOKS: readonly unknown[] = ["inspect", "isLocked", "forceUnlock"];
  return new Proxy(write, {
    get(_, key) {
      const lock = LOOKS.includes(key) ? read : write;
      const member: unknown = Reflect.get(lock, key, lock);
      return typeof member === "function" ? member.bind(lock) : member;
    },
  });
}

type Loose<T> = (...args: unknown[]) => Promise<T>;

/** Unlocked as a lock is. */
const unlockable = (lease: PermitLease): UnfencedLease =>
  Object.defineProperty(lease, "unlock", { value: () => lease.release() }) as unknown as UnfencedLease;

/**
 * A semaphore with one permit, with the methods of a lock: for tests that take one lock at a time.
 */
class Permit implements Lock<UnfencedLease> {
  readonly name: string;
  readonly #slots: Semaphore;

  constructor(slots: Semaphore) {
    this.name = slots.name;
    this.#slots = slots;
  }

  async tryLock(...args: unknown[]): Promise<UnfencedLease | null> {
    const lease = await (this.#slots.tryAcquire as Loose<PermitLease | null>).call(this.#slots, 1, ...args);
    return lease && unlockable(lease);
  }

  async lock(...args: unknown[]): Promise<UnfencedLease> {
    return unlockable(await (this.#slots.acquire as Loose<PermitLease>).call(this.#slots, 1, ...args));
  }

  withLock<T>(...args: unknown[]): Promise<T> {
    const [body] = args.slice(-1) as [(lease: UnfencedLease) => T];
    const given =
      typeof body === "function" ? [...args.slice(0, -1), (one: PermitLease) => body(unlockable(one))] : args;
    return (this.#slots.withPermits as Loose<T>).call(this.#slots, 1, ...given);
  }

  isHeldHere(): boolean {
    throw new TypeError("a scope does not know permits");
  }

  async isLocked(): Promise<boolean> {
    return (await this.#slots.inspect()).used > 0;
  }

  async recall(): Promise<never> {
    throw new TypeError("nobody keeps permits");
  }

  async inspect(): Promise<Inspection> {
    const { holders, waiters, here, at } = await this.#slots.inspect();
    const [holder = null] = holders;
    const { token = null, remaining = null } = holder ?? {};
    return { holder, token, remaining, kept: false, waiters, at, here };
  }

  async forceUnlock(options?: ForceUnlockOptions): Promise<boolean> {
    return (await this.#slots.forceUnlock(options)) > 0;
  }

  unlock(): never {
    return (this.#slots as unknown as { release(): never }).release();
  }

  toJSON(): object {
    return (this.#slots as unknown as { toJSON(): object }).toJSON();
  }
}

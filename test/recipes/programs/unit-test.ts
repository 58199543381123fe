import {
  type Lease,
  type LockBody,
  type LockClient,
  LockLostError,
  type LockOptions,
  LockTimeoutError,
} from "holdfast";
import { prove, sleep } from "./support.ts";

// #region application
/** What this application uses of a lock client. A `LockClient` and a `QuorumClient` have it, and so has the fake. */
export interface Locks {
  lock(name: string): { withLock<T>(body: LockBody<T>, options?: LockOptions): Promise<T> };
}

export interface Bank {
  pay(order: string, how: { signal: AbortSignal; fence: number }): Promise<void>;
}

export class Payments {
  readonly #locks: Locks;
  readonly #bank: Bank;

  constructor(locks: Locks, bank: Bank) {
    this.#locks = locks;
    this.#bank = bank;
  }

  async pay(order: string): Promise<"paid" | "busy"> {
    try {
      const body: LockBody<void> = ({ signal, token }) => this.#bank.pay(order, { signal, fence: token });
      await this.#locks.lock(`order:${order}`).withLock(body, { wait: 1_000 });
      return "paid";
    } catch (error) {
      if (error instanceof LockTimeoutError) return "busy";
      throw error;
    }
  }
}
// #endregion

// #region fake
/** Locks for unit tests: no Redis, one process, and a test can say that a lock is busy or lost. */
export class FakeLocks implements Locks {
  readonly busy = new Set<string>();
  readonly #held = new Map<string, AbortController>();
  #token = 0;

  lock(name: string): ReturnType<Locks["lock"]> {
    return {
      withLock: async (body, { wait = Number.POSITIVE_INFINITY } = {}) => {
        if (this.busy.has(name) || this.#held.has(name)) throw new LockTimeoutError(name, wait); // the fake never waits
        const loss = new AbortController();
        this.#held.set(name, loss);
        try {
          const result = await body(this.#lease(name, loss.signal));
          loss.signal.throwIfAborted();
          return result;
        } finally {
          this.#held.delete(name);
        }
      },
    };
  }

  /** The lock is lost while its body runs. */
  lose(name: string): void {
    this.#held.get(name)?.abort(new LockLostError(name, "expired"));
  }

  #lease(name: string, signal: AbortSignal): Lease {
    const unused = async (): Promise<void> => {};
    return {
      name,
      token: ++this.#token,
      signal,
      wanted: new AbortController().signal, // nobody waits
      get held() {
        return !signal.aborted;
      },
      assertHeld: () => signal.throwIfAborted(),
      remaining: () => (signal.aborted ? 0 : 30_000),
      extend: unused,
      unlock: unused,
      [Symbol.asyncDispose]: unused,
      [Symbol.dispose]: () => {},
    };
  }
}
// #endregion

// #region tests
const locks = new FakeLocks();
const bank = { pay: (_: string, { signal }: { signal: AbortSignal }) => sleep(20, undefined, { signal }) };
const payments = new Payments(locks, bank);

prove((await payments.pay("42")) === "paid", "it pays");

locks.busy.add("order:42");
prove((await payments.pay("42")) === "busy", "it says that another process pays");

const lost = payments.pay("43").catch((error: Error) => error.message);
locks.lose("order:43");
prove((await lost).includes("aborted"), "the payment ends when the lock is lost");
// #endregion

const fits = (real: LockClient): Locks => real; // compiles: the application takes the real client, too
prove(typeof fits === "function", "the real client fits");

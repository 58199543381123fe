import { createHash } from "node:crypto";
import { FingerprintError, type LockClient, LockTimeoutError, LockUnavailableError } from "holdfast";

export interface Order {
  readonly amount: number;
}

/** What a request is answered. A refusal is one, too. */
export interface Reply {
  readonly status: number;
  readonly body: object;
}

export interface Bank {
  charge(order: Order, how: { idempotencyKey: string; signal: AbortSignal }): Promise<Reply>;
}

export class Payments {
  readonly #locks: LockClient;
  readonly #bank: Bank;

  constructor(locks: LockClient, bank: Bank) {
    this.#locks = locks;
    this.#bank = bank;
  }

  /** The first request with a key pays. Later ones get its reply, for a day, from any process. */
  async pay(account: string, key: unknown, order: Order): Promise<Reply & { readonly isReplay: boolean }> {
    if (typeof key !== "string" || key === "" || key.length > 100)
      return { status: 400, body: { error: "an Idempotency-Key is needed" }, isReplay: false };
    const fingerprint = createHash("sha256").update(JSON.stringify(order)).digest("hex");
    const options = { keep: 86_400_000, wait: 0, fingerprint };
    // The bank gets a key as well: if this process dies before the reply is stored, another request
    // charges again.
    const { value, ran } = await this.#locks.remember(`pay:${account}:${key}`, options, (run) =>
      this.#bank.charge(order, { idempotencyKey: run.name, signal: run.signal }),
    );
    return { ...value, isReplay: !ran };
  }
}

/** What to answer if `pay` rejects. */
export function failure(error: unknown): Reply {
  if (error instanceof LockTimeoutError)
    return { status: 409, body: { error: "the first request with this key is still running" } };
  if (error instanceof FingerprintError)
    return { status: 422, body: { error: "this key was used for another request" } };
  if (error instanceof LockUnavailableError)
    return { status: 503, body: { error: "try again: nothing was done" } };
  return { status: 500, body: { error: "try again with the same key" } };
}

import type { HolderFlag, RenewAnswer } from "../../redis/replies.ts";
import { type Instant, now } from "../../util/clock.ts";
import type { Hold } from "./hold.ts";

/**
 * Raises the TTL of holds of one lock kind: several in one call, with an answer for each, in order.
 */
export interface Renewer {
  /**
   * How many in one call. In Cluster one: each lock has its own slot, and during a migration a
   * single key can still be found.
   */
  readonly batch: number;
  /** The longest lease, in ms; left out: as long as a timer can wait. */
  readonly longestLease?: number;
  /** `ttl` in ms, counted from now; never shortens. Rejects when there was no answer within `timeout` ms. */
  renew(holds: readonly Renewal[], timeout: number): Promise<readonly RenewAnswer[]>;
}

/** A hold to renew. `flag`: the digit to set in the lock; null: unchanged. */
export interface Renewal {
  readonly hold: Named;
  readonly ttl: number;
  readonly flag: HolderFlag | null;
}

/** A hold, as Redis names it. */
export interface Named {
  readonly name: string;
  readonly id: string;
  readonly label: string;
}

/** Renews these by one command. Rejects when there was no answer. */
export async function renewAll(
  renewer: Renewer,
  all: readonly (Renewal & { readonly hold: Hold })[],
  timeout: number,
): Promise<{ readonly sent: Instant; readonly answers: readonly RenewAnswer[] }> {
  const sent = now();
  for (const { hold, ttl } of all) hold.asks(ttl, sent.mono);
  return { sent, answers: await renewer.renew(all, timeout) };
}

/** Groups them by kind, with as many in each as one command takes. */
export function batches<T, K extends Pick<Renewer, "batch">>(
  all: readonly T[],
  kindOf: (one: T) => K,
): (readonly [K, T[]])[] {
  const open = new Map<K, T[]>();
  const batched: (readonly [K, T[]])[] = [];
  for (const one of all) {
    const kind = kindOf(one);
    let batch = open.get(kind);
    if (!batch || batch.length >= kind.batch) {
      batch = [];
      open.set(kind, batch);
      batched.push([kind, batch]);
    }
    batch.push(one);
  }
  return batched;
}

import type { Lock, LockClient, LockOptions } from "../../index.ts";
import type { Held } from "./guard.ts";
import type { Fenced } from "./holding.ts";
import type { RunPlan, Wanted } from "./plan.ts";

/** Held for the command. */
export interface Acquired extends Held {
  /** What it runs under. Without a token: permits. */
  readonly held: readonly Fenced[];
  /** Aborts when somebody waits. To read it subscribes the client, so that it hears at once when the lock is taken by force. */
  readonly wanted: AbortSignal;
  extend(ms: number): Promise<void>;
  leave(): Promise<void>;
}

/** A name as the lock that is wanted of it. */
export function lockOf(locks: LockClient, name: string, wanted: Extract<Wanted, { fair: boolean }>): Lock {
  if (wanted.kind === "lock") return wanted.fair ? locks.fairLock(name) : locks.lock(name);
  return locks.readWriteLock(name, { fair: wanted.fair })[wanted.kind];
}

/** @throws LockTimeoutError where others have it; what `lock()` throws. */
export async function acquire(
  locks: LockClient,
  { names, wanted, wait }: RunPlan & { readonly wanted: Exclude<Wanted, { kind: "once" }> },
  signal: AbortSignal,
): Promise<Acquired> {
  const options: LockOptions = { wait, signal };
  if (wanted.kind === "permit") {
    const lease = await locks.semaphore(names[0], { permits: wanted.slots }).acquire(1, options);
    return acquired(lease, () => lease.release(), [{ name: lease.name }]);
  }
  const all = names.map((name) => lockOf(locks, name, wanted));
  const [only] = all;
  if (only && all.length === 1) {
    const lease = await only.lock(options);
    return acquired(lease, () => lease.unlock(), [lease]);
  }
  const lease = await locks.multiLock(all).lock(options);
  const held = names.map((name) => ({ name, token: lease.tokens.get(name) }));
  return acquired(lease, () => lease.unlock(), held);
}

function acquired(
  lease: Omit<Acquired, "held" | "leave">,
  leave: () => Promise<void>,
  held: readonly Fenced[],
): Acquired {
  return {
    held: held.map(({ name, token }) => ({ name, token })),
    signal: lease.signal,
    wanted: lease.wanted,
    get remaining() {
      return lease.remaining;
    },
    extend: (ms) => lease.extend(ms),
    leave,
  };
}

import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { Lock } from "../../src/index.ts";

export interface CrowdOptions {
  readonly callers: number;
  /** How long the callers run, in ms. */
  readonly ms: number;
  /** Time inside, in ms; 0: a turn of the event loop; null: none. */
  readonly body: number | null;
}

/** One time that a caller had the lock. `at`: µs of the clock that all processes of a machine share. */
interface CrowdTurn {
  readonly at: number;
  readonly token: number;
}

export interface CrowdReport {
  readonly turns: readonly CrowdTurn[];
  /** How calls without the lock ended, and the losses that unlocks reported; each kind once. */
  readonly errors: readonly string[];
}

/** µs of the clock that all processes of a machine share. */
export const micros = (): number => Number(process.hrtime.bigint() / 1_000n);

/** Callers of one client that take a lock repeatedly, without a pause. */
export async function crowd(lock: Lock, { callers, ms, body }: CrowdOptions): Promise<CrowdReport> {
  const turns: CrowdTurn[] = [];
  const errors = new Set<string>();
  const end = performance.now() + ms;
  const caller = async (): Promise<void> => {
    while (performance.now() < end) {
      try {
        const lease = await lock.lock();
        turns.push({ at: micros(), token: lease.token });
        if (body === 0) await nextTurn();
        else if (body !== null) await sleep(body);
        await lease.unlock();
      } catch (error) {
        const { code, reason } = error as { code?: string; reason?: string };
        errors.add([code ?? String(error), reason].filter(Boolean).join(" "));
      }
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return { turns, errors: [...errors] };
}

import type { Party } from "./fixture.ts";
import { Onlooker } from "./onlooker.ts";
import { timed } from "./stage.ts";
import { until } from "./until.ts";

/** A grant by message takes less; a re-check would find it after 1.1 s at the earliest. In ms. */
const BY_MESSAGE = 350;

/**
 * Makes `waiter` wait for `holder` repeatedly, until it gets the lock by a message. Returns the ms
 * from each unlock to the next lease.
 */
export async function turnsUntilHeard(holder: Party, waiter: Party, name: string): Promise<number[]> {
  const lock = new Onlooker(holder.redis, name);
  const waits: number[] = [];
  const turn = async (): Promise<boolean> => {
    const held = await holder.locks.lock(name).lock();
    const waiting = waiter.locks.lock(name).lock();
    await lock.queued(1);
    await held.unlock();
    const [lease, waited] = await timed(waiting);
    await lease.unlock();
    waits.push(waited);
    return waited < BY_MESSAGE;
  };
  await turn(); // any problem is found by this turn at the earliest
  await until(turn, { what: "a grant by message", timeout: 20_000 });
  return waits;
}

import { freshName, type Party } from "./fixture.ts";
import { Onlooker } from "./onlooker.ts";

/**
 * Makes a client open its subscriber connection, as its first wait does: it waits for `holder`, at
 * another lock.
 */
export async function warm(holder: Party, { locks }: Party): Promise<void> {
  const lock = new Onlooker(holder.redis, freshName("warm"));
  const held = await holder.locks.lock(lock.name).lock({ wait: 0 });
  const waiting = locks.lock(lock.name).lock();
  await lock.queued(1);
  await held.unlock();
  await (await waiting).unlock();
}

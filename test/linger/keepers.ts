import { Actor } from "../support/actor.ts";
import { Beside } from "../support/beside.ts";
import { freshName } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { LINGERING } from "../support/stays.ts";

/** ms: less than `linger`, and than a re-check. */
export const AT_ONCE = 700;

/** Another process that caches a lock. */
interface Keeper {
  readonly actor: Actor;
  readonly lock: Onlooker;
}

/** A server whose client here has waited once: its first wait is not what is measured. */
export const besideKeepers = (): Beside =>
  new Beside(async (here) => {
    const name = freshName();
    const held = await here.locks.lock(name).lock();
    await here.locks.lock(name).tryLock(1);
    await held.unlock();
  });

export async function withKeeper(beside: Beside, use: (keeper: Keeper) => Promise<void>): Promise<void> {
  const client = { ...LINGERING, replyTimeout: 1_000 };
  const actor = await Actor.start({ url: beside.server.url, client });
  const lock = new Onlooker(beside.here.redis, freshName());
  try {
    await actor.call("keep", lock.name);
    await use({ actor, lock });
  } finally {
    await actor.end().catch(() => {});
  }
}

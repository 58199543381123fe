import { Actor } from "../support/actor.ts";
import type { Beside } from "../support/beside.ts";
import type { CrowdOptions, CrowdReport } from "../support/crowd.ts";
import { freshName } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

interface Crowd {
  readonly lock: Onlooker;
}

/** Another process whose callers take a lock again and again; it hears messages already. */
export async function crowd(
  beside: Beside,
  options: Partial<CrowdOptions> & { ms: number },
  use: (crowd: Crowd) => Promise<void>,
): Promise<CrowdReport> {
  const actor = await Actor.start({ url: beside.server.url });
  const lock = new Onlooker(beside.here.redis, freshName());
  try {
    // Its first wait subscribes.
    const held = await beside.here.locks.lock(lock.name).lock();
    const first = actor.call("acquire", "lock", lock.name, 10_000);
    await lock.queued(1);
    await held.unlock();
    await actor.call("unlock", (await first)?.handle ?? 0);
    const report = actor.call("crowd", lock.name, { callers: 8, body: 0, ...options });
    await until(() => lock.holder());
    await use({ lock });
    return await report;
  } finally {
    await actor.end();
  }
}

/** Waits for a turn beside the crowd, and gives it back; the ms that it took. */
export async function turn(beside: Beside, { lock }: Crowd): Promise<number> {
  const [lease, waited] = await timedAwake(beside.here.locks.lock(lock.name).lock());
  await lease.unlock();
  return waited;
}

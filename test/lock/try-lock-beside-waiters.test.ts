import { expect, it } from "vitest";
import { freshName, Parties } from "../support/fixture.ts";
import { lockOf } from "../support/permit.ts";

// A process whose callers wait for a lock in their thousands goes on asking for it with tryLock().

const parties = new Parties();

/** ms of CPU that `calls` times tryLock() of a held lock take beside so many parked callers. */
async function costBeside(
  kind: "lock" | "redissonLock" | "spinLock",
  parked: number,
  calls: number,
): Promise<number> {
  const [holder, crowd] = [await parties.join(), await parties.join()];
  try {
    const name = freshName();
    const held = await lockOf(holder.locks, kind, name).lock();
    const enough = new AbortController();
    const lock = lockOf(crowd.locks, kind, name);
    const waiting = Array.from({ length: parked }, () => lock.lock({ signal: enough.signal, wait: 600_000 }));
    const over = Promise.allSettled(waiting);
    for (let i = 0; i < 20; i++) expect(await lock.tryLock()).toBeNull();
    const before = process.cpuUsage();
    for (let i = 0; i < calls; i++) expect(await lock.tryLock()).toBeNull();
    const { user, system } = process.cpuUsage(before);
    enough.abort();
    await over;
    await held.unlock();
    return (user + system) / 1_000;
  } finally {
    await parties.close();
  }
}

it.each(["lock", "redissonLock", "spinLock"] as const)(
  "tryLock() costs the same beside a crowd as beside a few: %s",
  async (kind) => {
    const few = await costBeside(kind, 100, 200);
    const many = await costBeside(kind, 50_000, 200);
    // 200 looks at each of 50 000 callers take more than a second.
    expect(many).toBeLessThan(6 * few + 200);
  },
  60_000,
);

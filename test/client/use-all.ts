import { expect } from "vitest";
import { freshName, type Party } from "../support/fixture.ts";
import { lockOf, type Maker } from "../support/permit.ts";

/** Has two clients do all that a lock of this kind can: take, hand over, renew, inspect, take away, leave. */
export async function useAll(kind: Maker, a: Party, b: Party): Promise<void> {
  const name = freshName();
  const [mine, theirs] = [lockOf(a.locks, kind, name), lockOf(b.locks, kind, name)];
  const held = await mine.lock();
  const waiter = theirs.lock();
  expect(await theirs.tryLock(50)).toBeNull();
  await held.extend(60_000);
  await mine.inspect();
  await held.unlock();
  await (await waiter).unlock();
  const again = await mine.lock();
  expect(await theirs.forceUnlock()).toBe(true);
  await again.unlock().catch(() => {});
}

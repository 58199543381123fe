import { expect } from "vitest";
import type { LockClient } from "../../src/index.ts";
import { freshName } from "./fixture.ts";
import { until } from "./until.ts";

/**
 * Every connection of `locks` is closed by `cut`, while it holds a lock and waits for one of
 * `others`. Then it takes a lock, receives messages, renews its lease and gets the lock for which it
 * has waited; nothing was lost.
 */
export async function survivesCut(
  locks: LockClient,
  others: LockClient,
  cut: () => Promise<unknown>,
): Promise<void> {
  const [kept, busy] = [freshName("kept"), freshName("busy")];
  const losses: unknown[] = [];
  const renewed = new Set<string>();
  let waits = 0;
  locks.on("lost", (event) => losses.push(event));
  locks.on("renew", ({ name }) => renewed.add(name));
  locks.on("wait", () => waits++);
  locks.on("error", () => {}); // renewals, while there is no connection
  const take = (name: string) =>
    until(() =>
      locks
        .lock(name)
        .tryLock()
        .catch(() => null),
    );
  const lease = await take(kept);
  const held = await others.lock(busy).lock();
  const waiting = locks.lock(busy).lock();
  waiting.catch(() => {});
  const receives = () => locks.check().then(({ problems }) => problems.length === 0);
  await until(async () => waits === 1 && (await receives()));
  await cut();
  renewed.clear();
  await (await take(freshName())).unlock();
  await until(receives, { what: "messages to arrive again" });
  await until(() => renewed.has(kept), { what: "the lease to be renewed" });
  await held.unlock();
  await (await waiting).unlock();
  await lease.unlock();
  expect(losses).toEqual([]);
}

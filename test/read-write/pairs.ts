import type { ReadWriteLock } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import type { Stage } from "../support/stage.ts";

/**
 * One read-write lock as two processes see it: `mine` is behind the proxy. Both connections know
 * the scripts.
 */
export async function openReadWrite(stage: Stage): Promise<{ mine: ReadWriteLock; theirs: ReadWriteLock }> {
  const name = freshName();
  const [mine, theirs] = [stage.near.locks.readWriteLock(name), stage.far.locks.readWriteLock(name)];
  await stage.warm(stage.near);
  for (const { read, write } of [mine, theirs])
    for (const lock of [read, write]) await lock.withLock(() => {});
  return { mine, theirs };
}

import { beforeEach, expect, vi } from "vitest";
import { LingerLearner } from "../../src/core/linger-learner.ts";
import type { LockEvents, ReadWriteLock } from "../../src/index.ts";
import { countedLua } from "../../src/redis/lua.generated.ts";
import type { Party } from "./fixture.ts";
import { loadScripts } from "./load-scripts.ts";
import { Stage } from "./stage.ts";
import { LINGERING } from "./stays.ts";

/** Reads are cached wherever possible. */
export const keepAlways = () =>
  vi.spyOn(LingerLearner.prototype, "keeps").mockImplementation((name) => name.startsWith("rw:"));

/**
 * A stage whose `near` caches its readers' shared hold, wherever possible. The read-write lock of a
 * test has the name of its lock.
 */
export class KeptReadsStage extends Stage {
  readonly keeps = keepAlways();

  constructor() {
    super({ near: { client: LINGERING } });
    beforeEach(() => loadScripts(this.far.redis, countedLua));
  }

  /** The hash of the lock. */
  get key(): string {
    return `holdfast:rw:{${this.lock.name}}`;
  }

  pairOf({ locks }: Party): ReadWriteLock {
    return locks.readWriteLock(this.lock.name);
  }

  async holders(): Promise<number> {
    return (await this.pairOf(this.far).inspect()).holders.length;
  }

  /** A client has read and left, and has cached that. */
  async keep(party = this.near): Promise<ReadWriteLock> {
    await this.warm(party);
    const pair = this.pairOf(party);
    await pair.read.withLock(() => {});
    expect(party.locks.stats().kept).toBe(1);
    return pair;
  }
}

/** The events of this name from now on. */
export function heard<K extends keyof LockEvents>(party: Party, event: K): Parameters<LockEvents[K]>[0][] {
  const all: Parameters<LockEvents[K]>[0][] = [];
  party.locks.on(event, ((told: Parameters<LockEvents[K]>[0]) => void all.push(told)) as LockEvents[K]);
  return all;
}

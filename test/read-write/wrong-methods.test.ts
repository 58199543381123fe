import { afterAll, expect, it } from "vitest";
import { freshName, Parties } from "../support/fixture.ts";

const parties = new Parties();
afterAll(parties.close);

it.each(["withLock", "lock", "tryLock", "unlock"])(
  "a read-write lock has no %s(), and names the locks that have",
  async (method) => {
    const { locks } = await parties.join();
    const pair = locks.readWriteLock(`${freshName()}'s`);
    const called = (): unknown => (pair as unknown as Record<string, () => unknown>)[method]?.();
    expect(called).toThrow(TypeError);
    expect(called).toThrow(/^Cannot lock 'test:.*\\'s': .*\.read\.withLock\(\).*\.write\.withLock\(\)/);
    expect(Object.keys(pair)).not.toContain(method);
  },
);

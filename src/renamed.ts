/**
 * Names from drafts of version 1, each with how the error about it ends. No alias exists: an old name is refused in one
 * sentence that says the new one. Version 1.1 may delete this file.
 */
const OPTIONS: Readonly<Record<string, string>> = {
  scopes: "it is `reentrant` now",
  localPasses: "it is `localHandoffs` now",
  minHold: "it is gone: `locks.runOnce()` runs a job once per interval",
};

const METHODS: Readonly<Record<string, string>> = {
  redissonLock: "redissonLock(locks, name, options) from holdfast/redisson",
  redissonFencedLock: "redissonFencedLock(locks, name) from holdfast/redisson",
  spinLock: "spinLock(locks, name, options) from holdfast/spin",
};

/** What an unknown option is called now; null: no draft had it. */
export const renamedOption = (name: string): string | null =>
  Object.hasOwn(OPTIONS, name) ? (OPTIONS[name] ?? null) : null;

/** Has the clients of this class refuse the methods that they had, for callers without types. */
export function refuseRenamedMethods({ prototype }: { readonly prototype: object }): void {
  for (const [name, now] of Object.entries(METHODS))
    Object.defineProperty(prototype, name, {
      configurable: true,
      value() {
        throw new TypeError(`Cannot create a lock: locks.${name}() is ${now} now`);
      },
    });
}

/** What is said of an old call that still is a method, of something else. */
export const RENAMED_ONCE =
  "Cannot add a listener: a job per interval is `locks.runOnce(name, { every }, body)` now";

/**
 * Names from drafts of version 1, each with how the error about it ends. No alias exists: an old name is refused in one
 * sentence that says the new one. Version 1.1 may delete this file.
 */
const OPTIONS: Readonly<Record<string, string>> = {
  scopes: "it is `reentrant` now",
  localPasses: "it is `localHandoffs` now",
  minHold: "it is gone: `locks.runOnce()` runs a job once per interval",
};

/** By what they are methods of, and what they were to do. */
const METHODS = {
  locks: {
    to: "create a lock",
    now: {
      redissonLock: "redissonLock(locks, name, options) from holdfast/redisson",
      redissonFencedLock: "redissonFencedLock(locks, name) from holdfast/redisson",
      spinLock: "spinLock(locks, name, options) from holdfast/spin",
    },
  },
  lock: { to: "ask the holder", now: { ask: "lock.recall()" } },
} as const;

const COMMANDS: Readonly<Record<string, string>> = { ask: "it is `holdfast recall` now." };

/** What an unknown option is called now; null: no draft had it. */
export const renamedOption = (name: string): string | null =>
  Object.hasOwn(OPTIONS, name) ? (OPTIONS[name] ?? null) : null;

/** What an unknown command of the command line is called now; null: no draft had it. */
export const renamedCommand = (name: string): string | null =>
  Object.hasOwn(COMMANDS, name) ? (COMMANDS[name] ?? null) : null;

/** Has the objects of this class refuse the methods that they had, for callers without types. */
export function refuseRenamedMethods(
  of: keyof typeof METHODS,
  { prototype }: { readonly prototype: object },
): void {
  const { to, now } = METHODS[of];
  for (const [name, is] of Object.entries(now))
    Object.defineProperty(prototype, name, {
      configurable: true,
      value() {
        throw new TypeError(`Cannot ${to}: ${of}.${name}() is ${is} now`);
      },
    });
}

/** What is said of an old call that still is a method, of something else. */
export const RENAMED_ONCE =
  "Cannot add a listener: a job per interval is `locks.runOnce(name, { every }, body)` now";

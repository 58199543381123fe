/**
 * Names from drafts of version 1, each with how the error about it ends. No alias exists: an old
 * name is refused in one sentence that says the new one. Version 1.1 may delete this file.
 */
const OPTIONS: Readonly<Record<string, string>> = {
  scopes: "it is `reentrant` now",
  localPasses: "it is `localHandoffs` now",
  minHold: "it is gone: `locks.runOnce()` runs a job once per interval",
};

const COMMANDS: Readonly<Record<string, string>> = { ask: "it is `holdfast recall` now." };

const lockOf = (name: string, call: string, entry: string): string =>
  `Cannot create a lock: locks.${name}() is ${call} from holdfast/${entry} now`;

/** Methods by what had them: what the error says. */
export const RENAMED = {
  client: {
    redissonLock: lockOf("redissonLock", "redissonLock(locks, name, options)", "redisson"),
    redissonFencedLock: lockOf("redissonFencedLock", "redissonFencedLock(locks, name)", "redisson"),
    spinLock: lockOf("spinLock", "spinLock(locks, name, options)", "spin"),
  },
  lock: { ask: "Cannot ask the holder: lock.ask() is lock.recall() now" },
  permits: { unlock: "Cannot unlock permits: lease.unlock() of a semaphore is lease.release() now" },
  multiLease: { token: "Cannot tell a token: lease.token(name) is lease.tokens.get(name) now" },
} as const;

/** What an unknown option is called now; null: no draft had it. */
export const renamedOption = (name: string): string | null =>
  Object.hasOwn(OPTIONS, name) ? (OPTIONS[name] ?? null) : null;

/** What an unknown command of the command line is called now; null: no draft had it. */
export const renamedCommand = (name: string): string | null =>
  Object.hasOwn(COMMANDS, name) ? (COMMANDS[name] ?? null) : null;

/** Has the objects of this class refuse the methods that they had, for callers without types. */
export function refuseRenamedMethods(
  { prototype }: { readonly prototype: object },
  renamed: Readonly<Record<string, string>>,
): void {
  for (const [name, message] of Object.entries(renamed))
    Object.defineProperty(prototype, name, {
      configurable: true,
      value() {
        throw new TypeError(message);
      },
    });
}

/** What is said of an old call that still is a method, of something else. */
export const RENAMED_ONCE =
  "Cannot add a listener: a job per interval is `locks.runOnce(name, { every }, body)` now";

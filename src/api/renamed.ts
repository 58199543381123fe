/**
 * Names from drafts of version 1, each with the end of the error about it. There are no aliases:
 * the error names the new option or method in one sentence. Version 1.1 may delete them.
 */
const OPTIONS: Readonly<Record<string, string>> = {
  scopes: "it is `reentrant` now",
  localPasses: "it is `localHandoffs` now",
  minHold: "it is gone: `locks.runOnce()` runs a job once per interval",
};

/** What other libraries call an option, or where it belongs here. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  timeout: "how long a call waits is `wait`",
  ttl: "how long a lock lasts without renewal is `lease`; mostly none is needed",
  wait: "it belongs to the call: lock(), tryLock() or withLock()",
  lease: "it belongs to the call: lock(), tryLock() or withLock(); a client has `leaseTime`",
};

const COMMANDS: Readonly<Record<string, string>> = { ask: "it is `holdfast recall` now." };

const lockOf = (name: string, call: string, entry: string): string =>
  `Cannot create a lock: locks.${name}() is ${call} from holdfast/${entry} now`;

/** Methods that are gone, and those of other libraries, by their object: each with its error message. */
export const RENAMED = {
  client: {
    withLock: "Cannot run a body: locks.withLock(name, body) is locks.lock(name).withLock(body) here",
    acquire: "Cannot take a lock: redlock's acquire([a], ms) is locks.lock(a).lock() here",
    using: "Cannot run a body: redlock's using([a], ms, body) is locks.lock(a).withLock(body) here",
    redissonLock: lockOf("redissonLock", "redissonLock(locks, name, options)", "redisson"),
    redissonFencedLock: lockOf("redissonFencedLock", "redissonFencedLock(locks, name)", "redisson"),
    spinLock: lockOf("spinLock", "spinLock(locks, name, options)", "spin"),
  },
  lock: {
    ask: "Cannot ask the holder: lock.ask() is lock.recall() now",
    acquire: "Cannot take a lock: lock.acquire() is lock.lock() here",
    release: "Cannot release a lock: keep the lease that tryLock() or lock() gave, and call lease.unlock()",
  },
  permits: { unlock: "Cannot unlock permits: lease.unlock() of a semaphore is lease.release() now" },
  multiLease: { token: "Cannot read a token: lease.token(name) is lease.tokens.get(name) now" },
} as const;

/** What to write instead of an unknown option; null: nothing is known of it. */
export const renamedOption = (name: string): string | null => {
  const known = { ...ELSEWHERE, ...OPTIONS };
  return Object.hasOwn(known, name) ? (known[name] ?? null) : null;
};

/** The new name of an unknown command of the command line; null: no draft had it. */
export const renamedCommand = (name: string): string | null =>
  Object.hasOwn(COMMANDS, name) ? (COMMANDS[name] ?? null) : null;

/** Makes the objects of this class refuse their former methods, for callers without types. */
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

/** For an old call that is still a method, but of something else. */
export const RENAMED_ONCE =
  "Cannot add a listener: a job per interval is `locks.runOnce(name, { every }, body)` now";

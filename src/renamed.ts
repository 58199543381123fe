/**
 * Names from drafts of version 1, each with how the error about it ends. No alias exists: an old name is refused in one
 * sentence that says the new one. Version 1.1 may delete this file.
 */
const OPTIONS: Readonly<Record<string, string>> = {
  localPasses: "it is `localHandoffs` now",
  minHold: "it is gone: `locks.runOnce()` runs a job once per interval",
};

/** What an unknown option is called now; null: no draft had it. */
export const renamedOption = (name: string): string | null =>
  Object.hasOwn(OPTIONS, name) ? (OPTIONS[name] ?? null) : null;

const METHODS = {
  once: "Cannot add a listener: a job per interval is `locks.runOnce(name, { every }, body)` now",
  ask: "`lock.ask()` is `lock.recall()` now",
} as const;

/** What is said of a method that has another name now. */
export const renamedMethod = (name: keyof typeof METHODS): string => METHODS[name];

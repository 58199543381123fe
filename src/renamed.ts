/**
 * Names from drafts of version 1, each with how the error about it ends. No alias exists: an old name is refused in one
 * sentence that says the new one. Version 1.1 may delete this file.
 */
const OPTIONS: Readonly<Record<string, string>> = {
  minHold: "it is gone: `locks.once()` runs a job once per interval",
};

/** What an unknown option is called now; null: no draft had it. */
export const renamedOption = (name: string): string | null =>
  Object.hasOwn(OPTIONS, name) ? (OPTIONS[name] ?? null) : null;

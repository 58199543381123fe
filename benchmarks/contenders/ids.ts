/** Holdfast's own locks, with their defaults. */
export const HOLDFAST: readonly string[] = ["lock", "fair-lock", "redisson-lock"];

/** All that is Holdfast's. */
export const OURS: readonly string[] = [
  ...HOLDFAST,
  "lock-node-redis",
  "lingering-lock",
  "labelled-lock",
  "read-write-lock",
  "semaphore",
];

/** Permits of every semaphore. */
export const PERMITS = 10;

/** The id of one of them with the library of another commit. */
export const idAt = (id: string, commit: string): string => `${id}@${commit}`;

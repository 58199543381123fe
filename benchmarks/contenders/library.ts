/** What is measured of it. */
export type Library = Pick<typeof import("../../src/index.ts"), "createLockClient"> &
  Pick<typeof import("../../src/redisson.ts"), "redissonLock">;

/**
 * Holdfast: as it is here, or as another commit has it.
 *
 * @param at the file URL of that one's compiled index.js; null: the present one
 */
export async function loadLibrary(at: string | null): Promise<Library> {
  const [{ createLockClient }, { redissonLock }] = await Promise.all(
    at === null
      ? [import("../../src/index.ts"), import("../../src/redisson.ts")]
      : [import(at) as Promise<Library>, import(new URL("redisson.js", at).href) as Promise<Library>],
  );
  return { createLockClient, redissonLock };
}

/** Holdfast's own contenders. */
export const HOLDFAST: readonly string[] = ["lock", "lingering-lock", "fair-lock", "redisson-lock"];

/** The id of one of them with the library of another commit. */
export const idAt = (id: string, commit: string): string => `${id}@${commit}`;

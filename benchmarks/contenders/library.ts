/**
 * Holdfast: as it is here, or as another commit has it.
 *
 * @param at the file URL of that one's compiled index.js; null: the present one
 */
export function loadLibrary(at: string | null): Promise<typeof import("../../src/index.ts")> {
  return at === null ? import("../../src/index.ts") : import(at);
}

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * By the names of plants: the first seed that found it, and the promise that it broke there. No seed:
 * something did not happen in any run.
 */
export type Found = Record<string, { readonly seed: number | null; readonly failure: string }>;

const FILE = join(import.meta.dirname, "found.json");

export const readFound = async (): Promise<Found> => JSON.parse(await readFile(FILE, "utf8"));

export const writeFound = (found: Found): Promise<void> =>
  writeFile(FILE, `${JSON.stringify(found, null, 2)}\n`);

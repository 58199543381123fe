import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The servers that this project can launch, the preferred one first. */
export const REDIS_COMMANDS = ["redis-server", "valkey-server"];

/** The path of the `redis-server` or `valkey-server` on the PATH; null if there is neither. */
export function serverCommand(): string | null {
  return findCommand(REDIS_COMMANDS);
}

/**
 * The path of the first of these commands that can be executed; null if there is none. Runs no
 * shell, because aliases must not matter, and names must not be expanded.
 *
 * @param path the folders to search; default: the PATH
 */
export function findCommand(names: readonly string[], path?: string): string | null {
  const { PATH = "" } = process.env;
  const folders = (path ?? PATH).split(delimiter).filter((folder) => folder !== "");
  const candidates = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

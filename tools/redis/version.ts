import { execFileSync } from "node:child_process";

/**
 * The version of a server program, such as [7, 0, 15]: what its `--version` says. A Valkey counts
 * by its own number, which began at 7.2.
 *
 * @throws Error when the program cannot be run, or says no version
 */
export function versionOf(command: string): number[] {
  const said = execFileSync(command, ["--version"], { encoding: "utf8" });
  const version = /\bv=(\d+)\.(\d+)\.(\d+)/.exec(said)?.slice(1).map(Number);
  if (version === undefined) throw new Error(`${command} --version says no version: ${said.trim()}`);
  return version;
}

/**
 * Is this version, [7, 0, 15] for one, at least that one, "7.0" for one? Parts that it does not
 * name do not count.
 */
export function isAtLeast(version: readonly number[], least: string): boolean {
  for (const [i, part] of least.split(".").map(Number).entries()) {
    const own = version[i] ?? 0;
    if (own !== part) return own > part;
  }
  return true;
}

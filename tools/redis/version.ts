import { execFileSync } from "node:child_process";

/**
 * The version of a server program, such as [7, 0, 15], from its `--version`. A Valkey has its own
 * numbers, which began at 7.2.
 *
 * @throws Error if the program cannot be run, or reports no version
 */
export function versionOf(command: string): number[] {
  const said = execFileSync(command, ["--version"], { encoding: "utf8" });
  const version = /\bv=(\d+)\.(\d+)\.(\d+)/.exec(said)?.slice(1).map(Number);
  if (version === undefined) throw new Error(`${command} --version says no version: ${said.trim()}`);
  return version;
}

/**
 * Is this version, such as [7, 0, 15], at least the other one, such as "7.0"? Missing parts do not
 * count.
 */
export function isAtLeast(version: readonly number[], least: string): boolean {
  for (const [i, part] of least.split(".").map(Number).entries()) {
    const own = version[i] ?? 0;
    if (own !== part) return own > part;
  }
  return true;
}

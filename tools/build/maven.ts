import { spawnSync } from "node:child_process";
import { findCommand } from "../redis/command.ts";

/** Why no Java program can be built and run here; null if it can. */
export function whyNoJava(): string | null {
  const missing = ["mvn", "java"].filter((command) => findCommand([command]) === null);
  return missing.length === 0 ? null : `not installed: ${missing.join(", ")}`;
}

/**
 * Compiles a Maven project and collects its dependencies in target/dependency.
 *
 * @throws Error with the last line that mvn has printed
 */
export function buildJava(folder: string): void {
  const { status, stdout } = spawnSync("mvn", ["-q", "-B", "package"], { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`mvn package failed: ${stdout.trim().split("\n").at(-1)}`);
}

/** The arguments with which Java finds the classes of a built project. */
export const classpathOf = (folder: string): string => `${folder}target/classes:${folder}target/dependency/*`;

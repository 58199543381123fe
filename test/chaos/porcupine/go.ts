import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { findCommand } from "../../../tools/redis/command.ts";

const run = promisify(execFile);

/** Where the installer of go.dev puts it, which no PATH may name. */
const USUAL = "/usr/local/go/bin/go";
const FOLDER = fileURLToPath(new URL(".", import.meta.url));

/** Runs this folder's Go program. What it needs is fetched by Go itself, when it runs for the first time. */
export async function runGo(args: readonly string[]): Promise<string> {
  const { stdout } = await go("run", ".", ...args);
  return stdout;
}

let obstacle: Promise<string | null> | undefined;

/** Why Porcupine cannot run here; null when it can. */
export function whyNoPorcupine(): Promise<string | null> {
  obstacle ??= go("mod", "download").then(
    () => null,
    (error: Error & { stderr?: string }) =>
      `no Porcupine here: ${(error.stderr ?? error.message).trim().split("\n").at(-1)}`,
  );
  return obstacle;
}

async function go(...args: string[]): Promise<{ stdout: string }> {
  const command = findCommand(["go"]) ?? (existsSync(USUAL) ? USUAL : null);
  if (command === null) throw new Error("Go is not installed");
  // No other version of Go is fetched.
  const env = { ...process.env, GOTOOLCHAIN: "local" };
  return run(command, args, { cwd: FOLDER, env, maxBuffer: 64 * 1024 * 1024 });
}

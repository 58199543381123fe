import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { findCommand } from "./command.ts";

const run = promisify(execFile);

/** Debian's packages run this file before they start a service; exit code 101 means no. */
const SERVICE_POLICY = "/usr/sbin/policy-rc.d";
/** Locked while this repository runs apt-get: here, and in proof/run.mjs. */
const APT_LOCK = "/tmp/holdfast-apt-get.lock";

/** Why nothing can be installed here; null if it can. */
export function whyNotInstall(): string | null {
  const { HOLDFAST_NO_INSTALL } = process.env;
  if (HOLDFAST_NO_INSTALL === "1") return "HOLDFAST_NO_INSTALL=1";
  if (!existsSync("/etc/debian_version")) return "this is neither Debian nor Ubuntu";
  if (process.getuid?.() !== 0) return "this needs root";
  if (findCommand(["apt-get"]) === null) return "there is no apt-get on the PATH";
  return null;
}

/**
 * Installs Debian's redis-server package, without starting its service: only the program is needed.
 *
 * @param say gets one line about what will happen, because this changes the machine
 * @throws Error with the last lines that apt-get wrote
 */
export async function installRedis(say: (line: string) => void): Promise<void> {
  await installPackages(["redis-server"], say);
}

/** Installs Debian packages, as {@link installRedis} does. Call {@link whyNotInstall} first. */
export async function installPackages(names: string[], say: (line: string) => void): Promise<void> {
  const list = names.join(", ");
  say(`Not on this machine: installing Debian's ${list} (HOLDFAST_NO_INSTALL=1 prevents it) ...`);
  await withoutServices(SERVICE_POLICY, async () => {
    await aptGet("update");
    await aptGet("install", "-y", "--no-install-recommends", ...names);
  });
}

/** Runs the body while no package may start a service. An existing policy is left alone. */
export async function withoutServices(policy: string, body: () => Promise<void>): Promise<void> {
  const ours = await writeFile(policy, "#!/bin/sh\nexit 101\n", { flag: "wx", mode: 0o755 }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );
  try {
    await body();
  } finally {
    if (ours) await rm(policy, { force: true });
  }
}

async function aptGet(...args: string[]): Promise<void> {
  try {
    // RACE: apt-get fails at once while another one is running. The tests and proof/run.mjs may
    // install at the same time; each waits for the other by locking this file.
    await run("flock", [APT_LOCK, "apt-get", ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      maxBuffer: 64 * 1024 * 1024,
    });
  } catch (cause) {
    const written = cause instanceof Error && "stderr" in cause ? String(cause.stderr) : String(cause);
    const tail = written.trim().split("\n").slice(-5).join("\n");
    throw new Error(`Installing failed: apt-get ${args.join(" ")}\n${tail}`, { cause });
  }
}

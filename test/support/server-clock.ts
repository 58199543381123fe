import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type LaunchOptions, type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { installPackages, whyNotInstall } from "../../tools/redis/install.ts";

/** The wall clock of one server. What the server measures with its monotonic clock goes on as it is. */
export interface ServerClock {
  /** ms by which it is ahead of the machine's. */
  readonly ahead: number;
  /** Moves it, at once; negative ms move it back. */
  jump(ms: number): void;
}

/**
 * Launches a server with a clock of its own, by libfaketime: `TIME` and the expiry of keys follow it.
 *
 * @example
 * const { server, clock } = await launchWithClock();
 * const redis = new Redis(server.url);
 * await redis.set("lock", "me", "PX", 60_000);
 * clock.jump(3_600_000);
 * await redis.get("lock"); // null
 *
 * @throws Error when libfaketime is not on this machine, and cannot be installed
 */
export async function launchWithClock(
  options: Omit<LaunchOptions, "prepare"> = {},
): Promise<{ server: LocalServer; clock: ServerClock }> {
  const library = await faketime();
  let file = "";
  let ahead = 0;
  const write = () => {
    writeFileSync(`${file}.new`, `${ahead < 0 ? "-" : "+"}${Math.abs(ahead) / 1_000}\n`);
    renameSync(`${file}.new`, file); // the server never reads half of it
  };
  const server = await launchServer({
    ...options,
    async prepare(dir) {
      file = join(dir, "clock");
      write();
      return { env: { ...SETTINGS, LD_PRELOAD: `${MALLOC}:${library}`, FAKETIME_TIMESTAMP_FILE: file } };
    },
  });
  const jump = (ms: number) => {
    ahead += ms;
    write();
  };
  const clock = {
    get ahead() {
      return ahead;
    },
    jump,
  };
  return { server, clock };
}

/**
 * The allocator of Debian's Redis, jemalloc, asks for the time while libfaketime, to find the real clock, asks it for
 * memory: neither ever starts. This part of glibc brings its plain allocator, which asks nobody.
 */
const MALLOC = "libc_malloc_debug.so.0";

const SETTINGS = { FAKETIME_NO_CACHE: "1", DONT_FAKE_MONOTONIC: "1", FAKETIME_DISABLE_SHM: "1" };

/** The path of libfaketime for programs with threads, which a Redis is. */
async function faketime(): Promise<string> {
  const found = findLibrary();
  if (found !== undefined) return found;
  const obstacle = whyNotInstall();
  if (obstacle !== null) throw new Error(`No libfaketime here, and it cannot be installed: ${obstacle}`);
  await installPackages(["libfaketime"], (line) => void process.stderr.write(`${line}\n`));
  const installed = findLibrary();
  if (installed === undefined) throw new Error("apt-get succeeded, but brought no libfaketime");
  return installed;
}

/** Debian has it in a folder that is named after the processor, such as x86_64-linux-gnu. */
function findLibrary(): string | undefined {
  const folders = existsSync("/usr/lib") ? readdirSync("/usr/lib") : [];
  return folders
    .map((folder) => join("/usr/lib", folder, "faketime/libfaketimeMT.so.1"))
    .find((file) => existsSync(file));
}

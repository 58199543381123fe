import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type LaunchOptions, type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { installPackages, whyNotInstall } from "../../tools/redis/install.ts";
import { present } from "./present.ts";

/**
 * The wall clock of one server. Times that the server measures with its monotonic clock are not
 * affected.
 */
export interface ServerClock {
  /**
   * By how many ms it is ahead of the machine's. If its rate differs, this may be wrong by some ms
   * on a busy machine.
   */
  readonly ahead: number;
  /** Moves it, at once; negative ms move it back. */
  jump(ms: number): void;
}

/**
 * Launches a server with its own clock, by libfaketime: `TIME` and the expiry of keys follow it.
 *
 * @example
 * const { server, clock } = await launchWithClock();
 * const redis = new Redis(server.url);
 * await redis.set("lock", "me", "PX", 60_000);
 * clock.jump(3_600_000);
 * await redis.get("lock"); // null
 *
 * @param options `rate`: how fast it runs; 1 is the machine's rate
 * @throws Error if libfaketime is not on this machine, and cannot be installed
 */
export async function launchWithClock({
  rate = 1,
  ...options
}: Omit<LaunchOptions, "prepare"> & { rate?: number } = {}): Promise<{
  server: LocalServer;
  clock: ServerClock;
}> {
  const library = await faketime();
  let clock: FakeClock | undefined;
  const server = await launchServer({
    ...options,
    async prepare(dir) {
      const made = new FakeClock(join(dir, "clock"), rate);
      clock = made;
      return { env: environment(library, made.file), starting: () => made.starts() };
    },
  });
  return { server, clock: present(clock) };
}

/**
 * Has a program that this process starts another wall clock, which is moved in the same
 * way. @throws as `launchWithClock`
 */
export async function clockForProcess(
  file: string,
): Promise<{ clock: ServerClock; env: Readonly<Record<string, string>> }> {
  const library = await faketime();
  const clock = new FakeClock(file, 1);
  return { clock, env: environment(library, file) };
}

const environment = (library: string, file: string) => ({
  ...SETTINGS,
  LD_PRELOAD: `${MALLOC}:${library}`,
  FAKETIME_TIMESTAMP_FILE: file,
});

/** ms: a start is recorded too early by at most this, times the difference of the rate from 1. */
const START = 5;

/** The file from which libfaketime reads the time. */
class FakeClock implements ServerClock {
  readonly file: string;
  readonly #rate: number;
  #offset = 0;
  /** libfaketime counts the rate from the start of its process. */
  #since = Date.now();

  constructor(file: string, rate: number) {
    this.file = file;
    this.#rate = rate;
    this.#write();
  }

  get ahead(): number {
    return this.#offset + (Date.now() - this.#since) * (this.#rate - 1);
  }

  jump(ms: number): void {
    this.#offset += ms;
    this.#write();
  }

  /** Continues where it was, or slightly before, so that it never steps forward. */
  starts(): void {
    if (this.#rate === 1) return;
    this.#offset = this.ahead - START;
    this.#since = Date.now();
    this.#write();
  }

  #write(): void {
    const sign = this.#offset < 0 ? "-" : "+";
    const rate = this.#rate === 1 ? "" : ` x${this.#rate}`;
    writeFileSync(`${this.file}.new`, `${sign}${Math.abs(this.#offset) / 1_000}${rate}\n`);
    renameSync(`${this.file}.new`, this.file); // the program never reads half of it
  }
}

/**
 * The allocator of Debian's Redis, jemalloc, asks for the time while libfaketime, to find the real
 * clock, asks it for memory: neither ever starts. This part of glibc contains its plain allocator,
 * which has no such dependency.
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

/** Debian has it in a folder named after the processor, such as x86_64-linux-gnu. */
function findLibrary(): string | undefined {
  const folders = existsSync("/usr/lib") ? readdirSync("/usr/lib") : [];
  return folders
    .map((folder) => join("/usr/lib", folder, "faketime/libfaketimeMT.so.1"))
    .find((file) => existsSync(file));
}

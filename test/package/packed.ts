import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

/** When the package.json of the packed copy was changed last, unless packing changes it. */
export const COPIED_AT = new Date("2001-01-01");

const INSTALLED = /(?:^|\/)(?:node_modules|(?:benchmarks|recipes)\/build)(?:\/|$)/;

/**
 * Packs a copy of the project, `source` in `temp`, by `npm pack` as it stands in the README, and
 * unpacks it there as "package". Returns the paths in it.
 */
export async function packPackage(temp: string): Promise<string[]> {
  const source = join(temp, "source");
  // A copy: building deletes what the other tests import.
  const parts = (await readdir(root)).filter(
    (name) => !/^(\.|node_modules$|dist$|coverage$)|\.tgz$/.test(name),
  );
  // RACE: other suites install packages and build programs meanwhile.
  const filter = (path: string): boolean => !INSTALLED.test(path.slice(root.length));
  for (const part of parts) await cp(join(root, part), join(source, part), { recursive: true, filter });
  await utimes(join(source, "package.json"), COPIED_AT, COPIED_AT);
  await symlink(join(root, "node_modules"), join(source, "node_modules"));
  await npm(source, "pack", "--silent", "--offline", "--pack-destination", temp);

  const tarball = (await readdir(temp)).find((name) => name.endsWith(".tgz"));
  if (tarball === undefined) throw new Error("npm pack made no tarball");
  await run("tar", ["-xzf", join(temp, tarball), "-C", temp]);
  const entries = await readdir(join(temp, "package"), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(temp, "package/").length));
}

/** What it needs beside ioredis: its own dependencies and peers, and the types of Node.js. */
const DEPENDENCIES = [
  "eventemitter3",
  "p-timeout",
  "@opentelemetry/api",
  "prom-client",
  "@types/node",
  "undici-types",
];

/** npm as a user calls it: what the npm that runs the tests was told must not reach it. */
export function npm(cwd: string, ...args: string[]) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  return run("npm", args, { cwd, env: { ...env, npm_config_update_notifier: "false" } });
}

/**
 * A project of a user with these files: it has the unpacked package, its peers, this version of
 * ioredis, and a second copy of both.
 */
export async function consumer(
  temp: string,
  alias: string,
  files: Record<string, string>,
  unpacked = join(temp, "package"),
): Promise<string> {
  const folder = join(temp, `consumer-${alias}`);
  const modules = join(folder, "node_modules");
  await mkdir(modules, { recursive: true });
  for (const name of ["holdfast", "second-holdfast"])
    await cp(unpacked, join(modules, name), { recursive: true });
  const installed = join(root, "node_modules");
  for (const name of DEPENDENCIES) {
    await mkdir(join(modules, name, ".."), { recursive: true });
    await symlink(join(installed, name), join(modules, name));
  }
  await symlink(join(installed, alias), join(modules, "ioredis"));
  // A copy, so that it is another class with another type; its own dependencies are found beside it.
  await cp(join(installed, alias), join(modules, "second-ioredis"), { recursive: true });
  const { dependencies } = JSON.parse(await readFile(join(installed, alias, "package.json"), "utf8"));
  for (const name of Object.keys(dependencies)) {
    await mkdir(join(modules, name, ".."), { recursive: true });
    await symlink(join(installed, name), join(modules, name));
  }
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  return folder;
}

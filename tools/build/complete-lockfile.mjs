// Adds to package-lock.json the optional packages for other platforms that `npm install` left out
// because the registry in use did not serve them. `npm ci` refuses a lock file without them,
// although it would not install them here. Run it after every `npm install` that changed the lock
// file: `node tools/build/complete-lockfile.mjs`, or `node tools/build/complete-lockfile.mjs
// test/recipes`.
import { readFileSync, writeFileSync } from "node:fs";

const [folder = "."] = process.argv.slice(2);
const file = new URL(`../../${folder}/package-lock.json`, import.meta.url);
const lock = JSON.parse(readFileSync(file, "utf8"));

const SYSTEMS = [
  "aix",
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "sunos",
  "win32",
];
const CPUS = ["ia32", "arm", "arm64", "loong64", "ppc64", "riscv64", "s390x", "x64"];

/** A platform package is named after its platform: `@biomejs/cli-linux-x64-musl`. */
function platform(name) {
  const words = name.split(/[/-]/);
  const os = words.find((word) => SYSTEMS.includes(word));
  const cpu = words.find((word) => CPUS.includes(word));
  if (!os || !cpu) return null;
  const isMusl = words.some((word) => word.startsWith("musl"));
  return { cpu: [cpu], os: [os], ...(os === "linux" && { libc: [isMusl ? "musl" : "glibc"] }) };
}

const added = [];
for (const parent of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    const fits = platform(name);
    if (lock.packages[key] || !fits) continue;
    lock.packages[key] = { version, ...(parent.dev && { dev: true }), optional: true, ...fits };
    added.push(name);
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
if (added.length > 0) writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`package-lock.json: ${added.length} optional packages of other platforms added`);

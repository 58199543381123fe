// Runs at the end of every `npm install` in this repository, including the install with which npm
// prepares a git dependency: so an install from git has a dist/ like the package of the registry.
// It does nothing if dist/ is newer than its sources, or if the build tools are not installed (`npm
// ci --omit=dev`), because a check-out needs no dist/.
//
// It is `postprepare`, and there is no `prepare`: npm would report a `prepare` to everyone who
// installs the packed tarball, as a script to be reviewed, although it would never run there.
import { execSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const SOURCES = ["src", "lua", "page", "tools", "package.json", "tsconfig.json", "tsconfig.build.json"];
const TOOLS = ["typescript7", "rolldown", "esbuild"];

const changed = (path) => statSync(join(root, path)).mtimeMs;

function newest(path) {
  if (!statSync(join(root, path)).isDirectory()) return changed(path);
  return Math.max(0, ...readdirSync(join(root, path)).map((name) => newest(join(path, name))));
}

const built = ["dist/index.js", "dist/index.d.ts"];
const isBuilt = built.every((path) => existsSync(join(root, path)));
if (isBuilt && Math.min(...built.map(changed)) > Math.max(...SOURCES.map(newest))) {
  // Nothing to do.
} else if (TOOLS.every((name) => existsSync(join(root, "node_modules", name)))) {
  execSync("npm run --silent build", { cwd: root, stdio: "inherit" });
} else process.stdout.write(`holdfast: dist/ is not built, as ${TOOLS.join(" or ")} is not installed.\n`);

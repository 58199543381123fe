// Builds dist/, all the code of the package: index.js, and the declarations that users' compilers can reach from
// index.d.ts. One module, because Node.js needs 0.5 ms of CPU for each that it imports (docs/decisions/0009).
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const config = join(root, "tsconfig.build.json");

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
// Below node_modules, which nobody watches, packs or checks in.
const all = mkdtempSync(join(root, "node_modules", ".holdfast-types-"));
try {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, "-p", config, "--outDir", all], { stdio: "inherit" });
  copyReached(join(all, "index.d.ts"), new Set());
} finally {
  rmSync(all, { recursive: true });
}

const bundle = await rolldown({
  input: join(root, "src/index.ts"),
  platform: "node",
  external: /^[^./]/, // packages, and what Node.js brings
  tsconfig: config,
});
await bundle.write({ file: join(dist, "index.js"), format: "esm", comments: false });

/** Copies declarations with all that they import, into one folder: "lease/lease.d.ts" becomes "lease-lease.d.ts". */
function copyReached(path, reached) {
  if (reached.has(path)) return;
  reached.add(path);
  const text = readFileSync(path, "utf8").replace(
    /(\b(?:from|import)\s*\(?")(\.[^"]+)"/g,
    (_, before, specifier) => {
      const target = join(dirname(path), specifier.replace(/\.[jt]s$/, ".d.ts"));
      copyReached(target, reached);
      return `${before}./${flat(target).replace(/\.d\.ts$/, ".js")}"`;
    },
  );
  writeFileSync(join(dist, flat(path)), text);
}

function flat(path) {
  return relative(all, path).replaceAll(/[\\/]/g, "-");
}

// Builds dist/, all the code of the package: index.js, and the declarations that users can reach. One module, because
// Node.js needs 0.5 ms of CPU for each that it imports (docs/decisions/0009).
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";
import { rolldown } from "rolldown";
import { reachable } from "./declarations.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const dist = join(root, "dist");
const LINE = 120;
const config = join(root, "tsconfig.build.json");

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
// Below node_modules, which nobody watches, packs or checks in.
const all = mkdtempSync(join(root, "node_modules", ".holdfast-types-"));
try {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, "-p", config, "--outDir", all], { stdio: "inherit" });
  for (const [path, text] of reachable(join(all, "index.d.ts"))) {
    const flattened = text.replace(/(\bfrom ")(\.[^"]+)"/g, (_, before, specifier) => {
      const target = join(dirname(path), specifier.replace(/\.[jt]s$/, ".d.ts"));
      return `${before}./${flat(target).replace(/\.d\.ts$/, ".js")}"`;
    });
    writeFileSync(join(dist, flat(path)), flattened);
  }
} finally {
  rmSync(all, { recursive: true });
}

const bundle = await rolldown({
  input: join(root, "src/index.ts"),
  platform: "node",
  external: /^[^./]/, // packages, and what Node.js brings
  tsconfig: config,
});
const { output } = await bundle.generate({ format: "esm", comments: false });
// In short lines: Node.js prints the line of an uncaught error, and names the column in stacks.
const { code } = await transform(output[0].code, { minifyWhitespace: true, lineLimit: LINE });
writeFileSync(join(dist, "index.js"), code);

/** They lie in one folder: "lease/lease.d.ts" becomes "lease-lease.d.ts". */
function flat(path) {
  return relative(all, path).replaceAll(/[\\/]/g, "-");
}

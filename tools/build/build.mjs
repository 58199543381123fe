// Builds dist/, all code of the package: a module for each entry point, and the declarations that
// users can reach from them. As few modules as the entry points allow, because Node.js needs 0.5 ms
// of CPU for each module that it imports (docs/decisions/0009).
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";
import { rolldown } from "rolldown";
import { reachable } from "./declarations.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const dist = join(root, "dist");
const LINE = 120;
/**
 * The declarations use Node.js's types: AbortSignal, Symbol.dispose, Buffer. From TypeScript 6 on a
 * program that names no `types` has none of them by default, and a lease's `signal` would have no
 * type there.
 */
const NODE_TYPES = '/// <reference types="node" />\n';
const config = join(root, "tsconfig.build.json");
/** Where the module of an entry point may be, below src. */
const PLACES = ["NAME", "NAME/index", "tools/NAME/index", "tools/telemetry/NAME"];
/** The paths below src of the modules that users import or run, by their names below dist. */
const entries = entriesOf(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
// Below node_modules, which no tool watches, packs or commits.
const all = mkdtempSync(join(root, "node_modules", ".holdfast-types-"));
try {
  const tsc = join(root, "node_modules/typescript7/bin/tsc");
  execFileSync(process.execPath, [tsc, "-p", config, "--outDir", all], { stdio: "inherit" });
  const declared = Object.values(entries).map((path) => join(all, `${path}.d.ts`));
  for (const [path, text] of reachable(declared)) {
    const flattened = text.replace(/(\bfrom ")(\.[^"]+)"/g, (_, before, specifier) => {
      const target = join(dirname(path), specifier.replace(/\.[jt]s$/, ".d.ts"));
      return `${before}./${flat(target).replace(/\.d\.ts$/, ".js")}"`;
    });
    writeFileSync(join(dist, flat(path)), declared.includes(path) ? NODE_TYPES + flattened : flattened);
  }
} finally {
  rmSync(all, { recursive: true });
}

const options = {
  platform: "node",
  external: /^[^./]/, // packages and Node.js's own modules
  tsconfig: config,
};
const sourceOf = (name) => join(root, `src/${entries[name]}.ts`);
const FOR_EXPORTERS = ["visible", "warn", "detached", "context"].map((name) =>
  join(root, `src/util/${name}.ts`),
);
/**
 * The module that importing the lock loads. Every entry point that needs a part of it imports the
 * same module.
 */
const ofLock = new Set((await bundled({ input: sourceOf("index") }, {}))[0].moduleIds);
const output = await bundled(
  { input: Object.fromEntries(Object.keys(entries).map((name) => [name, sourceOf(name)])) },
  {
    codeSplitting: {
      groups: [
        // The exporters print names and warn as the lock does, and load no other part of it.
        { name: "visible", test: (id) => FOR_EXPORTERS.includes(id) },
        { name: "core", test: (id) => ofLock.has(id) && id !== sourceOf("index") },
      ],
    },
    chunkFileNames: ({ name, moduleIds }) =>
      name === "core" || name === "visible" ? "[name].js" : sharedName(moduleIds),
    // Only local variables get short names: stacks name functions, methods and classes as the
    // source does.
    minify: { compress: false, mangle: { keepNames: true }, codegen: { removeWhitespace: false } },
  },
);
for (const chunk of output) {
  // In short lines: for an uncaught error Node.js prints the line, and stacks name the column.
  const { code } = await transform(chunk.code, {
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: LINE,
  });
  writeFileSync(join(dist, chunk.fileName), code);
}

/**
 * Modules that other entry points share: the page with the command line, kinds with test locks, the
 * exporters with each other; and the demo, with the locks in memory, which the command line loads
 * when it is asked for.
 */
function sharedName(ids) {
  const has = (path) => ids.some((id) => id.startsWith(join(root, "src", path)));
  if (has("tools/demo/")) return "demo.js";
  if (has("tools/testing/")) return "memory.js";
  if (has("tools/ui/observe.ts")) return "observe.js";
  if (has("tools/ui/")) return "page.js";
  if (has("redisson.ts")) return "redisson-locks.js";
  return has("spin.ts") ? "spin-locks.js" : "exporters.js";
}

async function bundled(input, output) {
  const bundle = await rolldown({ ...options, ...input });
  return (await bundle.generate({ format: "esm", comments: false, ...output })).output;
}

/** An entry point "./dist/ui.js" is made from src/tools/ui/index.ts. */
function entriesOf({ exports, bin = {} }) {
  const files = Object.values(exports).map((one) => one.default);
  const made = [...files, ...Object.values(bin)].filter((file) => file?.startsWith("./dist/"));
  return Object.fromEntries(
    made.map((file) => {
      const name = file.slice("./dist/".length, -".js".length);
      const paths = PLACES.map((place) => place.replace("NAME", name));
      const [path, other] = paths.filter((one) => existsSync(join(root, `src/${one}.ts`)));
      if (path === undefined || other !== undefined) throw new Error(`src has no module ${name}, or several`);
      return [name, path];
    }),
  );
}

/**
 * They are in one folder: "api/lease.d.ts" becomes "api-lease.d.ts", and an entry point's file has
 * the name of the entry point.
 */
function flat(path) {
  const below = relative(all, path).replaceAll("\\", "/");
  const entry = Object.keys(entries).find((name) => below === `${entries[name]}.d.ts`);
  return entry === undefined ? below.replaceAll("/", "-") : `${entry}.d.ts`;
}

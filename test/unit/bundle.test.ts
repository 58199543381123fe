import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { fencingLua } from "../../src/fencing/lua.generated.ts";
import { quorumLua } from "../../src/quorum/lua.generated.ts";
import { connectionLua } from "../../src/redis/client-lua.generated.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { uiLua } from "../../src/tools/ui/lua.generated.ts";
import { redissonLua } from "../../src/wires/redisson-lua.generated.ts";
import { spinLua } from "../../src/wires/spin-lua.generated.ts";
import { moduleOf } from "../support/entry-points.ts";

// What a bundler takes of the sources for an application that imports one entry point.

const root = fileURLToPath(new URL("../..", import.meta.url));
/** The modules of src that belong to one entry point beside the lock, or to several. */
const BESIDE = /^src\/(tools|((kinds\/)?(redisson|spin)|quorum|fencing|optimistic)\b)/;
const LUA = { fencingLua, quorumLua, redissonLua, spinLua, uiLua, handoffLua, connectionLua };

/** The modules in the bundle, and which scripts stand there. */
async function bundled(code: string): Promise<{ modules: string[]; scripts: string[] }> {
  const { metafile, outputFiles } = await build({
    stdin: { contents: code, resolveDir: `${root}/src`, loader: "ts" },
    absWorkingDir: root,
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    platform: "node",
    packages: "external",
  });
  const [output] = Object.values(metafile.outputs);
  const modules = Object.entries(output?.inputs ?? {}).flatMap(([path, { bytesInOutput }]) =>
    bytesInOutput > 0 && path.startsWith("src/") ? [path] : [],
  );
  const [{ text }] = outputFiles as unknown as [{ text: string }];
  const scripts = Object.values(LUA).flatMap((group) =>
    Object.values<{ name: string; sha: string }>(group).flatMap(({ name, sha }) =>
      text.includes(sha) ? [name] : [],
    ),
  );
  return { modules, scripts };
}

const foldersOf = (scripts: readonly string[]) =>
  [...new Set(scripts.map((name) => name.split("/")[0]))].sort();

it("createLockClient brings in no other entry point, and none of their scripts", async () => {
  const { modules, scripts } = await bundled('export { createLockClient } from "./index.ts";');
  expect(modules.filter((path) => BESIDE.test(path))).toEqual([]);
  expect(foldersOf(scripts)).toEqual(["connection", "handoff"]);
});

it.each([
  ["redisson", ["connection", "redisson"]],
  ["spin", ["connection", "spin"]],
  ["fencing", ["fencing"]],
  ["optimistic", []],
  ["quorum", ["connection", "quorum"]],
])("holdfast/%s alone brings in its own scripts and no others", async (entry, folders) => {
  const { modules, scripts } = await bundled(`export * from "./${moduleOf(entry)}";`);
  const isOwn = (path: string): boolean => new RegExp(`^src/(kinds/)?${entry}\\b`).test(path);
  expect(modules.filter((path) => BESIDE.test(path) && !isOwn(path))).toEqual([]);
  expect(modules.filter(isOwn)).not.toEqual([]);
  expect(foldersOf(scripts)).toEqual(folders);
  expect(modules).not.toContain("src/redis/lua.generated.ts");
});

it("every entry point of the package is a checked module, or the lock itself", () => {
  const { exports } = JSON.parse(readFileSync(`${root}/package.json`, "utf8")) as { exports: object };
  const names = Object.keys(exports).flatMap((path) => (/^\.\/\w+$/.test(path) ? [path.slice(2)] : []));
  expect(names.length).toBeGreaterThan(8);
  expect(names.filter((name) => !BESIDE.test(`src/${moduleOf(name)}`))).toEqual([]);
});

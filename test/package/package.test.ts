import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { fencingLua } from "../../src/fencing/lua.generated.ts";
import { quorumLua } from "../../src/quorum/lua.generated.ts";
import { handoffLua } from "../../src/redis/lua.generated.ts";
import { uiLua } from "../../src/tools/ui/lua.generated.ts";
import { redissonLua } from "../../src/wires/redisson-lua.generated.ts";
import { spinLua } from "../../src/wires/spin-lua.generated.ts";
import { links } from "../../tools/check/docs/markdown.ts";
import { freshName, testUrl } from "../support/fixture.ts";
import { CPU, MAIN, OLD, OLD_TSCONFIG, REQUIRE, SAID, TSCONFIG } from "./consumer.ts";
import { COPIED_AT, consumer, npm } from "./packed.ts";

// The package as npm would publish it, in the hands of users: packed, unpacked, compiled against and run.

/** What it may take on a user's disk. */
const WEIGHT_KIB = 1243;
/** What importing the lock loads of it, and the types that it has. */
const LOCK_KIB = 479;
/**
 * What `createLockClient` is in bytes when it is bundled and minified, with the two dependencies
 * and without ioredis.
 */
const BUNDLED = 335_000;
/** What `holdfast/testing` has beside the lock. */
const TESTING_KIB = 97;
/** An empty folder of a usual file system. */
const FOLDER_BYTES = 4096;

/** ms that a compiler may take on a busy machine. */
const COMPILING = 120_000;

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);
const tsc = join(root, "node_modules/typescript/bin/tsc");

const temp = inject("packedIn");
const packed = inject("packed");

describe("the tarball", () => {
  it("has what users need, and nothing else", () => {
    expect(packed).toEqual(
      expect.arrayContaining([
        "package.json",
        "README.md",
        "LICENSE",
        "dist/index.js",
        "dist/index.d.ts",
        "SECURITY.md",
        "llms.txt",
        "docs/coding-agents.md",
        "docs/errors.md",
        "docs/recipes.md",
        // The page about operating tells to import these.
        "docs/grafana.json",
        "docs/alerts.yml",
      ]),
    );
    const known =
      /^(dist\/[\w-]+(\.d\.ts|\.js)|docs\/[\w-]+\.md|README\.md|CHANGELOG\.md|SECURITY\.md|LICENSE|llms\.txt|package\.json)$/;
    const others = packed.filter((path) => !known.test(path));
    expect(others.sort()).toEqual([
      "benchmarks/charts/comparison.svg",
      "docs/alerts.yml",
      "docs/grafana.json",
      "docs/without-a-stop/queue-in-front.ts",
      "docs/without-a-stop/queued-mutex.ts",
      "docs/without-a-stop/queued-redlock-4.ts",
      "docs/without-a-stop/queued-redlock-5.ts",
    ]);
    // For people who change the library.
    expect(packed.filter((path) => path.startsWith("docs/protocol"))).toEqual([]);
    expect(packed).not.toContain("docs/maintaining.md");
  });

  it("has everything that its pages link to; pictures of the page stay in the repository", async () => {
    for (const page of packed.filter((path) => /\.(md|txt)$/.test(path))) {
      const text = await readFile(join(temp, "package", page), "utf8");
      const targets = links(text).map(({ target }) => target.replace(/#.*/, ""));
      const own = targets.filter((target) => target !== "" && !/^[a-z][a-z0-9+.-]*:/i.test(target));
      const paths = own.map((target) => join(page, "..", decodeURIComponent(target)));
      const dead = paths.filter(
        (path) => !packed.includes(path) && !/^docs\/images\/[\w-]+\.png$/.test(path),
      );
      expect([page, dead]).toEqual([page, []]);
    }
  });

  it("has a package.json without a script that npm asks a user to review", async () => {
    const { scripts } = JSON.parse(await readFile(join(temp, "package/package.json"), "utf8"));
    const reviewed = ["preinstall", "install", "postinstall", "prepare"];
    expect(reviewed.filter((name) => name in scripts)).toEqual([]);
  });

  it("is packed without a change to the project's own package.json", async () => {
    // Also not for a moment: an npm that is interrupted would leave the change behind.
    const { mtime } = await stat(join(temp, "source/package.json"));
    expect(mtime).toEqual(COPIED_AT);
  });

  it(
    "is also built by an install from git, which builds dist",
    async () => {
      const source = join(temp, "source");
      await rm(join(source, "dist"), { recursive: true });
      await npm(source, "run", "--silent", "postprepare");
      expect(await readdir(join(source, "dist"))).toContain("index.js");
      // npm runs it for a git dependency: a package whose script makes what it consists of.
      const small = join(temp, "small");
      await mkdir(small);
      const { postprepare } = JSON.parse(await readFile(join(root, "package.json"), "utf8")).scripts;
      expect(postprepare).toBe("node tools/build/prepare.mjs");
      const manifest = { name: "small", version: "1.0.0", files: ["made.txt"] };
      const scripts = { build: "exit 1", postprepare: "echo made > made.txt" };
      await writeFile(join(small, "package.json"), JSON.stringify({ ...manifest, scripts }));
      const git = (...args: string[]) =>
        run("git", ["-c", "user.name=test", "-c", "user.email=test@example.org", ...args], { cwd: small });
      await git("init", "--quiet");
      await git("add", ".");
      await git("commit", "--quiet", "--message", "small");
      const user = join(temp, "user");
      await mkdir(user);
      await writeFile(join(user, "package.json"), "{}");
      await npm(user, "install", "--offline", "--no-audit", `git+file://${small}`);
      expect(await readFile(join(user, "node_modules/small/made.txt"), "utf8")).toBe("made\n");
    },
    COMPILING,
  );

  it("is small", async () => {
    const kib = async (paths: readonly string[]) => {
      const folders = new Set(paths.map((path) => join(path, "..")));
      const sizes = await Promise.all(paths.map((path) => stat(join(temp, "package", path))));
      return sizes.reduce((sum, { size }) => sum + size, folders.size * FOLDER_BYTES) / 1024;
    };
    expect(await kib(packed)).toBeLessThanOrEqual(WEIGHT_KIB);
    const reached = await reachedFrom("dist/index.js", "dist/index.d.ts");
    expect(await kib(reached)).toBeLessThanOrEqual(LOCK_KIB);
    const testing = await reachedFrom("dist/testing.js");
    const beside = testing.filter((path) => !reached.includes(path));
    const own = ["dist/memory.js", "dist/testing.js"];
    expect(beside.sort()).toEqual(["dist/memory.js", "dist/redisson-locks.js", "dist/spin-locks.js", own[1]]);
    expect((await kib(own)) - FOLDER_BYTES / 1024).toBeLessThanOrEqual(TESTING_KIB);
  });

  it("has entry points that load the lock's module, and little of their own", async () => {
    for (const [name, ...own] of [
      ["quorum"],
      ["redisson", "dist/redisson-locks.js"],
      ["spin", "dist/spin-locks.js"],
      ["fencing"],
      ["optimistic"],
    ]) {
      const reached = await reachedFrom(`dist/${name}.js`);
      expect(reached.sort()).toEqual(["dist/core.js", "dist/visible.js", `dist/${name}.js`, ...own].sort());
    }
  });

  it("is smaller if only createLockClient is bundled: without the other entry points and their scripts", async () => {
    const { outputFiles } = await build({
      stdin: {
        contents: 'export { createLockClient } from "./dist/index.js";',
        resolveDir: join(temp, "package"),
      },
      nodePaths: [join(root, "node_modules")],
      bundle: true,
      minify: true,
      write: false,
      format: "esm",
      platform: "node",
    });
    const [{ text }] = outputFiles as unknown as [{ text: string }];
    expect(text.length).toBeLessThanOrEqual(BUNDLED);
    const present = (scripts: Readonly<Record<string, { readonly sha: string }>>) =>
      Object.values(scripts).filter(({ sha }) => text.includes(sha)).length;
    expect([quorumLua, redissonLua, spinLua, fencingLua, uiLua].map(present)).toEqual([0, 0, 0, 0, 0]);
    expect(present(handoffLua)).toBeGreaterThan(9);
  });

  it("has exporters that load only the printing of names from the lock, and the lock nothing of them", async () => {
    const lock = new Set(await reachedFrom("dist/index.js"));
    for (const name of ["otel", "prometheus"]) {
      const exporter = await reachedFrom(`dist/${name}.js`);
      expect(exporter.sort()).toEqual(["dist/exporters.js", "dist/visible.js", `dist/${name}.js`].sort());
      expect(exporter.filter((path) => lock.has(path))).toEqual(["dist/visible.js"]);
    }
  });

  it("has every script once, and every declaration that another one names", async () => {
    // A long string goes on in the next line.
    const modules = await reachedFrom("dist/index.js");
    const texts = await Promise.all(modules.map((path) => readFile(join(temp, "package", path), "utf8")));
    const code = texts.join("").replaceAll("\\\n", "");
    for (const line of ["local function grantNext", "local function missingRight"])
      expect(code.split(line), line).toHaveLength(2);
    const declarations = packed.filter((path) => path.endsWith(".d.ts"));
    for (const path of declarations) {
      const text = await readFile(join(temp, "package", path), "utf8");
      for (const [, name] of text.matchAll(/\b(?:from|import)\s*\(?"\.\/([^"]+)\.js"/g))
        expect(declarations).toContain(`dist/${name}.d.ts`);
    }
  });

  it("imports nothing but Node.js, eventemitter3, p-timeout and itself; each exporter what it exports to", async () => {
    const own = /^(node:[\w/]+|eventemitter3|p-timeout|\.\.?\/[\w./-]+)$/;
    // The program connects by itself.
    const peers: Record<string, readonly string[]> = {
      otel: ["@opentelemetry/api"],
      prometheus: ["prom-client"],
      cli: ["ioredis", "redis"],
      // The page's text, in which an example stands.
      page: ["holdfast/ui"],
    };
    const specifier = /\b(?:from|import|require)\s*\(?\s*["']([^"'\n]+)["']/g;
    const imported = new Set<string>();
    for (const path of packed.filter((path) => path.startsWith("dist/"))) {
      const text = await readFile(join(temp, "package", path), "utf8");
      const code = text.replace(/^\s*(\/?\*|\/\/).*$/gm, ""); // examples in comments import ioredis
      const [, entry = ""] = /^dist\/(\w+)\./.exec(path) ?? [];
      for (const [, name = ""] of code.matchAll(specifier)) {
        imported.add(name);
        if (!own.test(name)) expect(peers[entry], path).toContain(name);
      }
    }
    expect(imported).toContain("eventemitter3"); // the search finds something
    expect(imported).toContain("p-timeout");
  });
});

describe.each(["ioredis", "ioredis5"])("a consumer with %s", (alias) => {
  let folder: string;

  beforeAll(async () => {
    folder = await consumer(temp, alias, {
      "package.json": '{ "type": "module" }',
      "tsconfig.json": TSCONFIG,
      "main.ts": MAIN,
      "main.cjs": REQUIRE,
      "old/package.json": '{ "type": "commonjs" }',
      "old/tsconfig.json": OLD_TSCONFIG,
      "old/old.ts": OLD,
      "cpu.mjs": CPU,
    });
    await compile(folder);
  });

  it("compiles users' programs, and runs them", async () => {
    const { stdout, stderr } = await node("main.js");
    expect({ stdout: stdout.trim().split("\n"), stderr }).toEqual({ stdout: SAID, stderr: "" });
  });

  it("may require() it", async () => {
    const { stdout } = await node("main.cjs");
    expect(stdout.trim()).toBe("required true true");
  });

  it("has the command line, which works with any client library, and reports it if there is none", async () => {
    const program = join(folder, "node_modules/holdfast/dist/cli.js");
    const args = ["--redis", testUrl(), freshName(), "--", "echo", "ran"];
    expect((await run(process.execPath, [program, "run", ...args])).stdout).toBe("ran\n");
    expect((await run(process.execPath, [program, "--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const alone = join(temp, `alone-${alias}`); // where no folder above has it
    await cp(join(folder, "node_modules/holdfast"), join(alone, "node_modules/holdfast"), {
      recursive: true,
    });
    for (const name of ["eventemitter3", "p-timeout"])
      await symlink(join(root, "node_modules", name), join(alone, "node_modules", name));
    const aloneProgram = join(alone, "node_modules/holdfast/dist/cli.js");
    await expect(run(process.execPath, [aloneProgram, "run", ...args])).rejects.toMatchObject({
      code: 69,
      stderr: expect.stringMatching(/^holdfast: .*npm install ioredis, or npm install redis\.\n$/),
    });
    const nodeRedis = alias === "ioredis" ? "redis" : "redis5";
    await symlink(join(root, "node_modules", nodeRedis), join(alone, "node_modules/redis"));
    expect((await run(process.execPath, [aloneProgram, "run", ...args])).stdout).toBe("ran\n");
    expect((await run(process.execPath, [aloneProgram, "doctor", "--redis", testUrl()])).stdout).toMatch(
      /A message takes/,
    );
  });

  it.skipIf(alias !== "ioredis")(
    "compiles with the resolution that knows main and types only",
    () => compile(join(folder, "old")),
    COMPILING,
  );

  it.skipIf(alias !== "ioredis")("loads it in a fraction of what ioredis takes", async () => {
    const ratios: number[] = [];
    for (let i = 0; i < 9; i++) ratios.push(Number((await node("cpu.mjs")).stdout));
    ratios.sort((a, b) => a - b);
    // 0.27 on a busy machine, 20 to 25 ms of CPU; 0.55 on Node.js 24. It was 0.85 when every source
    // file was a module.
    expect(ratios[4]).toBeLessThan(0.7);
  });

  it.skipIf(alias !== "ioredis")("has test locks where no code may be made of texts", async () => {
    const program = `import { createTestLocks } from "holdfast/testing";
const locks = createTestLocks();
const lease = await locks.lock("order").tryLock();
await lease.unlock();
await locks.close();
let refused = "no";
try { new Function(""); } catch { refused = "yes"; }
console.log(lease.held, refused);`;
    const strict = ["--disallow-code-generation-from-strings", "--input-type=module", "-e", program];
    expect((await run(process.execPath, strict, { cwd: folder })).stdout).toBe("false yes\n");
  });

  const node = (file: string) =>
    run(process.execPath, [file, testUrl(), freshName()], { cwd: folder, timeout: 15_000 });
});

/** The files of the package that these name by import, and those that they name. */
async function reachedFrom(...paths: string[]): Promise<string[]> {
  const found = new Set(paths);
  for (const path of found) {
    const text = await readFile(join(temp, "package", path), "utf8");
    for (const [, name] of text.matchAll(/\b(?:from|import)\s*\(?\s*"\.\/([^"]+)\.js"/g))
      found.add(`dist/${name}${path.endsWith(".d.ts") ? ".d.ts" : ".js"}`);
  }
  return [...found];
}

async function compile(folder: string): Promise<void> {
  await run(process.execPath, [tsc, "-p", folder]).catch((error) => {
    throw new Error(`The consumer does not compile:\n${error.stdout}`);
  });
}

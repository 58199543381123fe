import { execFile } from "node:child_process";
import { appendFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { inTurn } from "../support/in-turn.ts";
import { ENTRIES, MAIN } from "./consumer.ts";
import { entryPoints } from "./examples/doc-comments.ts";
import { consumer } from "./packed.ts";

// The declarations under the compilers and settings that users have, with nothing skipped.

interface Settings {
  readonly moduleResolution: "nodenext" | "bundler";
  readonly lib: "es2022" | "esnext";
  readonly exactOptionalPropertyTypes: boolean;
}

const ALL: readonly Settings[] = (["nodenext", "bundler"] as const).flatMap((moduleResolution) =>
  (["es2022", "esnext"] as const).flatMap((lib) =>
    [true, false].map((exactOptionalPropertyTypes) => ({
      moduleResolution,
      lib,
      exactOptionalPropertyTypes,
    })),
  ),
);

/** Each value of each setting once: the compilers in JavaScript take seconds for a program. */
const OPPOSITES: readonly Settings[] = [
  { moduleResolution: "nodenext", lib: "es2022", exactOptionalPropertyTypes: true },
  { moduleResolution: "bundler", lib: "esnext", exactOptionalPropertyTypes: false },
];

const [DEFAULTS] = OPPOSITES as [Settings, Settings];

interface Compiler {
  /** The package that has it. */
  readonly name: string;
  /** What `tsc --version` must say. */
  readonly version: string;
  readonly settings: readonly Settings[];
}

/** Those in JavaScript have their turns in CI. */
const COMPILERS: readonly Compiler[] = [
  ...inTurn([
    { name: "typescript58", version: "Version 5.8.", settings: OPPOSITES },
    { name: "typescript", version: "Version 6.", settings: OPPOSITES },
  ]),
  { name: "typescript7", version: "Version 7.", settings: ALL },
];

/** ms that a compiler may take on a busy machine. */
const COMPILING = 120_000;

const root = fileURLToPath(new URL("../..", import.meta.url));
const packed = inject("packedIn");
const run = promisify(execFile);

let temp: string;
let folder: string;

beforeAll(async () => {
  temp = await mkdtemp(join(tmpdir(), "holdfast-compilers-"));
  const files = { "package.json": '{ "type": "module" }', "main.ts": MAIN, "entries.ts": ENTRIES };
  folder = await consumer(temp, "ioredis", files, join(packed, "package"));
});
afterAll(() => rm(temp, { recursive: true, force: true }));

/**
 * What a compiler says about files; "" when it is content. Without `types`, it takes what it takes
 * of itself.
 */
async function said(
  compiler: string,
  files: readonly string[],
  settings: Settings,
  types?: readonly string[],
): Promise<string> {
  const config = join(folder, `tsconfig-${files.join("-")}.json`);
  const compilerOptions = {
    ...settings,
    lib: [settings.lib],
    target: "es2022",
    module: settings.moduleResolution === "nodenext" ? "nodenext" : "esnext",
    strict: true,
    skipLibCheck: false,
    noEmit: true,
    ...(types && { types }),
  };
  await writeFile(config, JSON.stringify({ compilerOptions, files }));
  return compile(compiler, config);
}

/** What a compiler says about a project; "" when it is content. */
function compile(compiler: string, config: string): Promise<string> {
  const tsc = join(root, "node_modules", compiler, "bin/tsc");
  // Beside other tests, checkers in parallel take more time.
  const alone = compiler === "typescript7" ? ["--checkers", "1"] : [];
  return run(process.execPath, [tsc, "-p", config, ...alone], { cwd: folder }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  );
}

describe.each(COMPILERS)("$name", ({ name, version, settings }) => {
  it("is the intended compiler", async () => {
    const tsc = join(root, "node_modules", name, "bin/tsc");
    expect((await run(process.execPath, [tsc, "--version"])).stdout).toContain(version);
  });

  it.each(settings)(
    "accepts users' programs: $moduleResolution, $lib, exactOptionalPropertyTypes $exactOptionalPropertyTypes",
    async (settings) => {
      expect(await said(name, ["main.ts", "entries.ts"], settings)).toBe("");
    },
    COMPILING,
  );
});

describe("every entry point is found", () => {
  const RESOLUTIONS: [compiler: string, resolution: string, type: string][] = [
    ...COMPILERS.flatMap(({ name }): [string, string, string][] => [
      ...(name === "typescript7" ? [] : [[name, "node10", "commonjs"] as [string, string, string]]),
      [name, "node16", "module"],
      [name, "nodenext", "commonjs"],
      [name, "nodenext", "module"],
      [name, "bundler", "module"],
    ]),
  ];

  it.each(RESOLUTIONS)(
    "by %s with %s in a project of type %s",
    async (compiler, moduleResolution, type) => {
      expect(await imported(compiler, moduleResolution, type)).toBe("");
    },
    COMPILING,
  );

  it(
    "but not with node16 in a project of type commonjs, which knows no require() of an ES module",
    async () => {
      const text = await imported("typescript", "node16", "commonjs");
      const refused = text.match(/error TS\d+/g);
      expect(new Set(refused)).toEqual(new Set(["error TS1479"]));
      expect(refused).toHaveLength(entries().length);
    },
    COMPILING,
  );

  const entries = () => [...entryPoints(join(packed, "package")).keys()];

  /** What a compiler says about a program that imports all entry points. */
  async function imported(compiler: string, moduleResolution: string, type: string): Promise<string> {
    const inside = join(folder, [compiler, moduleResolution, type].join("-"));
    await mkdir(inside, { recursive: true });
    const module = { node10: "commonjs", bundler: "esnext" }[moduleResolution] ?? moduleResolution;
    const deprecated = compiler === "typescript" && moduleResolution === "node10";
    const compilerOptions = {
      module,
      moduleResolution,
      ...(deprecated && { ignoreDeprecations: "6.0" }),
      target: "es2022",
      types: ["node"],
      strict: true,
      skipLibCheck: true, // other programs of this file check the declarations
      noEmit: true,
    };
    const lines = entries().map((entry, i) => `import * as all${i} from "${entry}";`);
    const used = `export const all = [${lines.map((_, i) => `all${i}`)}];`;
    await writeFile(join(inside, "package.json"), JSON.stringify({ type }));
    await writeFile(join(inside, "all.ts"), [...lines, used, ""].join("\n"));
    await writeFile(join(inside, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["all.ts"] }));
    return compile(compiler, join(inside, "tsconfig.json"));
  }
});

describe("a program that lists no types, the default from TypeScript 6 on", () => {
  it.each([...entryPoints(join(packed, "package")).keys()])(
    "compiles with %s alone, which brings the types of Node.js",
    async (entry) => {
      const file = `${entry.replaceAll("/", "-")}.ts`;
      await writeFile(join(folder, file), `export * from "${entry}";\n`);
      expect(await said("typescript7", [file], DEFAULTS, [])).toBe("");
    },
    COMPILING,
  );
});

describe("this check", () => {
  it(
    "finds a wrong declaration, and a wrong use of a right one",
    async () => {
      const path = join(folder, "node_modules/second-holdfast/dist/spin.d.ts");
      await appendFile(path, "export declare const wrong: NotThere;\n");
      const uses = 'import { spinLock } from "second-holdfast/spin";\nspinLock(1);\n';
      await writeFile(join(folder, "wrong.ts"), uses);
      const text = await said("typescript7", ["wrong.ts"], DEFAULTS);
      expect(text).toContain("Cannot find name 'NotThere'");
      expect(text).toContain("wrong.ts(2,1)");
    },
    COMPILING,
  );
});

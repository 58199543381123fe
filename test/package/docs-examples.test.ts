import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "esbuild";
import { Redis } from "ioredis";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type CodeBlock, markdownFiles, readText, splitCode } from "../../tools/check/docs/markdown.ts";
import { isRecipe } from "../../tools/check/docs/recipes.ts";
import type { LocalServer } from "../../tools/redis/index.ts";
import { testUrl } from "../support/fixture.ts";
import { noPostgres, Postgres } from "../support/postgres.ts";
import { launchAll } from "../support/servers/launch-all.ts";

/** What the examples take from the reader's own program. Stands before each of them, as one line. */
const PRELUDE = `
const order = { id: 42 };
async function charge(what: { id: number }, how: { signal?: AbortSignal; fence: number }): Promise<void> {
  how.signal?.throwIfAborted();
  if (!(what.id > 0 && how.fence > 0)) throw new Error("charge: bad order or fence");
}
async function sendParcel(what: { id: number }): Promise<void> {
  if (!(what.id > 0)) throw new Error("sendParcel: bad order");
}
async function isPaid(what: { id: number }): Promise<boolean> {
  if (!(what.id > 0)) throw new Error("isPaid: bad order");
  return false;
}
void [order, charge, isPaid, sendParcel];
`.replaceAll("\n", " ");

/** Far more than an example takes: it hangs, or leaves something open that keeps its process alive. */
const ENDS_WITHIN = 45_000;

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Every key of the examples names it, so that they can be removed from a Redis that is not ours. */
const keyPrefix = `test:readme:${randomUUID()}:`;

interface Example extends CodeBlock {
  readonly name: string;
}

const examples: Example[] = markdownFiles(root).flatMap((file) =>
  splitCode(readText(root, file))
    .blocks.filter(({ info }) => /^ts\b/.test(info) && !isRecipe(info))
    .map((block) => ({ ...block, name: `${file}:${block.line}` })),
);

/**
 * Those that are marked so get a PostgreSQL with the tables of the docs; without a server they are
 * compiled only.
 */
const isForPostgres = ({ info }: Example): boolean => info.split(" ").includes("postgres");
const skipped = (example: Example): boolean => isForPostgres(example) && noPostgres !== "";

/** Those of several masters get three servers, which are too young to vote by themselves. */
const isForMasters = ({ info }: Example): boolean => info.split(" ").includes("masters");
const HOSTS = ["redis-a", "redis-b", "redis-c"];

let masters: LocalServer[] = [];
let folder: string;
let postgres: Postgres | undefined;

beforeAll(async () => {
  // Inside node_modules, so that "ioredis" is found, and neither git nor the linter sees the files.
  const cache = join(root, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  folder = mkdtempSync(join(cache, "holdfast-readme-"));
  // A copy: of a link, Node.js would look for the package's dependencies beside its target.
  cpSync(join(inject("packedIn"), "package"), join(folder, "node_modules/holdfast"), { recursive: true });
  if (examples.some(isForMasters)) masters = await launchAll(HOSTS.length, {});
  if (noPostgres !== "") return;
  postgres = await Postgres.launch();
  const client = await postgres.connect();
  const blocks = splitCode(readText(root, "docs/fencing.md")).blocks.filter(({ info }) => info === "sql");
  const tables = blocks.flatMap(({ code }) => /^CREATE TABLE .*?;/ms.exec(code) ?? []);
  for (const table of tables) await client.query(table);
  await client.query("INSERT INTO orders (id, status) VALUES (42, 'new')");
});

afterAll(async () => {
  await postgres?.stop();
  await Promise.all(masters.map((server) => server.stop()));
  rmSync(folder, { recursive: true, force: true });
  const redis = new Redis(testUrl());
  for await (const keys of redis.scanStream({ match: `*${keyPrefix}*` })) {
    if (keys.length > 0) await redis.unlink(keys);
  }
  await redis.quit();
});

/** How a short example ends that is marked so: it shows neither `close()` nor `quit()`. */
const isUnclosed = ({ info }: Example): boolean => info.split(" ").includes("unclosed");
const CLOSING = "await locks.close(); await redis.quit();";

/** Those that are marked so print something: they are shown to somebody who has just pasted them. */
const prints = ({ info }: Example): boolean => info.split(" ").includes("prints");

/** Writes an example as a module that uses the test server. Line 1 is the prelude. */
function write(example: Example): string {
  const fenced = 'redissonFencedLock(locks, "'; // is refused behind a prefix: there it stands in the name
  const options = example.code.includes(fenced) ? {} : { keyPrefix };
  const code = example.code
    .replaceAll(fenced, `${fenced}${keyPrefix}`)
    .replaceAll(
      "new Redis({ host })",
      `new Redis([${masters.map(({ port }) => port).join()}][${JSON.stringify(HOSTS)}.indexOf(host)] ?? 0)`,
    )
    .replaceAll("createQuorumClient(masters)", "createQuorumClient(masters, { restartDelay: 0 })")
    .replaceAll("createClient()", `createClient(${JSON.stringify({ url: testUrl(), keyPrefix })})`)
    .replaceAll("new Redis()", `new Redis(${JSON.stringify(testUrl())}, ${JSON.stringify(options)})`);
  const path = join(folder, `${example.name.replaceAll(/\W/g, "-")}.mts`);
  writeFileSync(path, `${PRELUDE}\n${code}\n${isUnclosed(example) ? CLOSING : ""}\n`);
  return path;
}

/** Runs an example in a process of its own. Resolves when that ends, by itself or by a signal. */
function run(
  example: Example,
  timeout = ENDS_WITHIN,
  variables: Record<string, string> = {},
): Promise<{ code: number | null; output: string }> {
  const path = write(example);
  const module = path.replace(/mts$/, "mjs");
  writeFileSync(module, transformSync(readFileSync(path, "utf8"), { loader: "ts", target: "node20" }).code);
  const args = [module];
  const env = { ...process.env, ...variables };
  const options = { cwd: root, env, timeout, killSignal: "SIGKILL" } as const;
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, options, (_, stdout, stderr) =>
      resolve({ code: child.exitCode, output: stdout + stderr }),
    );
  });
}

/**
 * What the compiler says about modules under the project's own settings, with lines as in the
 * Markdown file.
 */
function typeErrors(modules: ReadonlyMap<string, Example>): string[] {
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, files: [], include: [] }, ts.sys, root);
  const program = ts.createProgram([...modules.keys()], {
    ...options,
    skipLibCheck: true,
  });
  return ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
    const text = ts.flattenDiagnosticMessageText(messageText, "\n");
    if (!file || start === undefined) return text;
    const line = file.getLineAndCharacterOfPosition(start).line;
    const example = modules.get(file.fileName);
    if (!example) return `${relative(root, file.fileName)}:${line + 1}: ${text}`;
    return `${example.name.replace(/\d+$/, `${example.line + line - 1}`)}: ${text}`;
  });
}

describe("the examples in the docs", () => {
  it("are found", () => {
    for (const page of [
      "README.md",
      "docs/scopes.md",
      "docs/several-locks.md",
      "docs/optimistic.md",
      "docs/java.md",
    ])
      expect(examples.filter(({ name }) => name.startsWith(`${page}:`))).not.toEqual([]);
  });

  it.each(examples.filter((example) => !skipped(example)))(
    "$name runs, and ends by itself without a warning",
    async (example) => {
      const variables = isForPostgres(example) ? postgres?.env : {};
      const output = prints(example) ? expect.stringMatching(/^.+\n$/) : "";
      expect(await run(example, ENDS_WITHIN, variables)).toEqual({ code: 0, output });
    },
  );

  it.skipIf(noPostgres === "")(`with PostgreSQL are skipped: ${noPostgres}`, () => {});

  it("are correct under strict types", { timeout: 240_000 }, () => {
    expect(typeErrors(new Map(examples.map((example) => [write(example), example])))).toEqual([]);
  });
});

describe("this check", () => {
  const example = (code: string): Example => ({ info: "ts", line: 1, name: "made-up.md:1", code });

  it("finds an example that throws", async () => {
    const { code, output } = await run(example('throw new Error("a bad example");'));
    expect(code).toBe(1);
    expect(output).toContain("a bad example");
  });

  it("finds an example that leaves a connection open", async () => {
    const open = example('import { Redis } from "ioredis"; await new Redis().ping();');
    expect(await run(open, 2_000)).toEqual({ code: null, output: "" });
  });

  it("finds an unhandled error event", async () => {
    const { output } = await run(
      example(`
          import { Redis } from "ioredis";
          import { createLockClient } from "holdfast";
          const redis = new Redis();
          const locks = createLockClient(redis);
          await locks.scope(() => locks.lock("left behind").lock());
          await locks.close();
          await redis.quit();`),
    );
    expect(output).toContain("LOCK_LEFT_BEHIND");
  });

  it("finds a wrong type", { timeout: 240_000 }, () => {
    const wrong = example("charge(order, { fence: true });");
    expect(typeErrors(new Map([[write(wrong), wrong]]))).toEqual([
      "made-up.md:1: Type 'boolean' is not assignable to type 'number'.",
    ]);
  });
});

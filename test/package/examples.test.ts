import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { LocalServer } from "../../tools/redis/index.ts";
import { launchAll } from "../support/servers/launch-all.ts";
import { documented } from "./examples/doc-comments.ts";
import { APPLICATION, type Example, examplesOf, programOf, SERVERS } from "./examples/programs.ts";
import { type Running, runAll } from "./examples/run.ts";
import { consumer } from "./packed.ts";
import { strictOptions } from "./strict-options.ts";

// Every `@example` of what the entry points export, as an editor shows it: under strict types, and
// against real servers.

/** What users have most in hand: an editor should show an example of each of its methods. */
const CLIENTS = /^(LockClient|QuorumClient|LockTests|Lock|Lease)\./;

/** ms that one may take. All of them together take less than that on a quiet machine. */
const ENDS_WITHIN = 30_000;

const packed = inject("packedIn");
const docs = documented(join(packed, "package"));
const examples = examplesOf(docs);

let temp: string;
let folder: string;
let servers: LocalServer[] = [];

/** Planted ones, by which this check is checked. */
const example = (name: string, code: string): Example => ({ name, entry: "holdfast", code });
const PLANTED = [
  example("throws", 'throw new Error("a bad example");'),
  example("hangs", "await new Promise((resolve) => redis.once('close', resolve));"),
  example("comes after one that hangs", "await redis.ping();"),
  example("leaves a lease", 'await locks.lock("left").lock();'),
  example(
    "finds its lock held",
    'await using _ = await lock.lock(); if (!(await lock.tryLock())) return "busy";',
  ),
  example("rejects beside", "void Promise.reject(new Error('nobody listens'));"),
  example("ends its process", "process.exit(7);"),
  example("has a wrong type", "\nawait locks.lock(42);"),
  example("names what is not there", "await locks.fairlock('a').lock();"),
];

let errors: ReadonlyMap<string, string[]>;
let outcomes: ReadonlyMap<string, string[]>;
let planted: ReadonlyMap<string, string[]>;

beforeAll(async () => {
  temp = await mkdtemp(join(tmpdir(), "holdfast-examples-"));
  folder = await consumer(
    temp,
    "ioredis",
    { "package.json": '{ "type": "module" }' },
    join(packed, "package"),
  );
  await writeFile(join(folder, "application.ts"), APPLICATION);
  await writeFile(join(folder, "servers.ts"), SERVERS);
  [servers, errors] = await Promise.all([launchAll(3, {}), compile([...examples, ...PLANTED])]);
  const env = { EXAMPLE_PORTS: JSON.stringify(servers.map(({ port }) => port)) };
  const running = { servers: join(folder, "servers.js"), env, within: () => ENDS_WITHIN };
  outcomes = await outcomesOf(examples, running);
  planted = await outcomesOf(PLANTED, {
    ...running,
    within: (module) => (module.endsWith("/hangs.js") ? 500 : ENDS_WITHIN),
  });
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  await rm(temp, { recursive: true, force: true });
});

const fileOf = ({ name }: Example): string => name.replaceAll(/\W+/g, "-");

async function outcomesOf(examples: readonly Example[], running: Running) {
  const found = await runAll(
    examples.map((one) => join(folder, `${fileOf(one)}.js`)),
    running,
  );
  return new Map(examples.map(({ name }, i) => [name, found[i] ?? []]));
}

/** Writes them as modules, and tells what the compiler says about each, with the line in the example. */
async function compile(examples: readonly Example[]): Promise<ReadonlyMap<string, string[]>> {
  const programs = new Map(
    examples.map((one) => [join(folder, `${fileOf(one)}.ts`), { one, ...programOf(one, docs) }]),
  );
  for (const [path, { text }] of programs) await writeFile(path, text);
  const program = ts.createProgram([...programs.keys()], {
    ...strictOptions(folder),
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true, // compilers.test.ts checks it
  });
  const said = ts.getPreEmitDiagnostics(program).concat(program.emit().diagnostics);
  const found = new Map(examples.map(({ name }) => [name, [] as string[]]));
  for (const { file, start = 0, messageText } of said) {
    const text = ts.flattenDiagnosticMessageText(messageText, "\n");
    const of = file && programs.get(file.fileName);
    if (!of) throw new Error(`${file?.fileName}: ${text}`);
    const line = file.getLineAndCharacterOfPosition(start).line - of.before + 1;
    found.get(of.one.name)?.push(`line ${line}: ${text}`);
  }
  return found;
}

describe("the examples of the doc comments", () => {
  it("are found", () => {
    const entries = new Set(examples.map(({ entry }) => entry));
    expect([...entries]).toEqual([...new Set(docs.map(({ entry }) => entry))]);
    expect(new Set(examples.map(fileOf)).size).toBe(examples.length);
  });

  it.each(examples)("$name runs, and is correct under strict types", ({ name }) => {
    expect({ types: errors.get(name), run: outcomes.get(name) }).toEqual({ types: [], run: [] });
  });

  it("exist for every function, and every method of clients, locks and leases", () => {
    const wanted = docs.filter(
      ({ name, isFunction }) => isFunction && (CLIENTS.test(name) || !name.includes(".")),
    );
    expect(wanted.map(({ name }) => name)).toContain("LockClient.scope");
    const lacking = wanted.filter(({ examples }) => examples.length === 0);
    expect(lacking.map(({ name }) => name)).toEqual([]);
  });
});

describe("this check", () => {
  it("finds an example that throws, warns, rejects, returns, hangs or ends its process, and goes on after it", () => {
    const seen = PLANTED.map(({ name }) => [name, planted.get(name)?.join("\n").split("\n")[0]]);
    expect(Object.fromEntries(seen)).toEqual({
      throws: "Error: a bad example",
      hangs: "hangs: it did not end in 500 ms",
      "comes after one that hangs": "",
      "leaves a lease": expect.stringContaining("LOCK_LEFT_BEHIND"),
      "finds its lock held": 'left its way: it returned "busy"',
      "rejects beside": expect.stringContaining("nobody listens"),
      "ends its process": expect.stringMatching(/^its process ended \(7\): /),
      "has a wrong type": expect.stringContaining("TypeError"),
      "names what is not there": expect.stringContaining("TypeError"),
    });
  });

  it("finds a wrong type, in the example's own line", () => {
    const seen = PLANTED.flatMap(({ name }) => errors.get(name) ?? []);
    expect(seen).toEqual([
      "line 2: Argument of type 'number' is not assignable to parameter of type 'string'.",
      expect.stringMatching(/^line 1: Property 'fairlock' does not exist/),
    ]);
  });
});

import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { depthOf as inheritanceOf, readClasses } from "../support/classes.ts";
import { circles, readImports } from "../support/imports.ts";

// What docs/maintaining.md says of the layers. An exception that is not needed any more fails as well.

/**
 * The rooms of src, and the files that lie in src itself, from above to below: each entry may
 * import those after it.
 */
const LAYERS = [
  ["tools/cli"],
  ["tools/demo"],
  ["tools/ui", "tools/testing", "tools/telemetry"],
  ["index"],
  ["quorum", "redisson", "spin"],
  ["client"],
  ["inside"],
  ["client/check", "election", "list", "remember"],
  ["locks", "wires", "once"],
  ["locks/deadlocks"],
  ["runtime"],
  ["runtime/telemetry"],
  ["core"],
  ["core/lease", "fencing", "optimistic"],
  ["redis/drivers"],
  ["redis/ioredis"],
  ["redis"],
  ["api"],
  ["defaults", "util"],
];
/**
 * What a tool may import of src, beside files of tools: what users can import, what src/inside.ts
 * names for it, and src/util.
 */
const FOR_TOOLS = /^src\/((inside|index|redisson|spin|(quorum|fencing|optimistic)\/index)\.ts$|util\/)/;
/**
 * What one needs besides. `testing` puts a Redis in memory behind a client: it has a driver, and
 * builds a client on it.
 */
const FURTHER: Record<string, string[]> = {
  "tools/testing": ["api", "client", "redis"],
};
const UPWARD: string[] = [];
const IN_CIRCLES: string[] = [];
/** Files whose classes are one idea, and which one. */
const ONE_IDEA: Readonly<Record<string, string>> = {
  "src/api/errors.ts": "the errors of the library",
  "src/core/lease/hold.ts": "a hold, and the few that have a label of their own",
  "src/locks/lease.ts": "what callers hold: without a token, and with one",
  "src/optimistic/attempt.ts": "an attempt, and the error that ends it to begin anew",
  "src/quorum/node.ts": "a node, and the error of one that is not asked",
  "src/redis/ioredis/link.ts":
    "an ioredis connection: where it leads, what it carries, and its nodes in a Cluster",
  "src/redis/statement.ts": "a command that runs a script, and one that is prepared for a lock",
  "src/redis/trouble.ts": "what is wrong with a Redis, and the error of its silence",
  "src/tools/cli/exit-codes.ts": "an error for an exit code",
  "src/tools/cli/run/signals.ts":
    "signals while a command is run: what each of them ends, stops or lets go on",
  "src/tools/testing/keyspace.ts": "the keys of a Redis, and what it replies",
  "src/tools/testing/lua-runtime.ts": "what compiled scripts call: Lua's values, functions and errors",
  "src/tools/testing/memory-link.ts": "connections to a Redis in memory: for commands, and for messages",
  "src/util/timers.ts": "one heap, and what stands in it",
};
/** The other files with several classes. */
const SEVERAL_CLASSES: string[] = ["src/redis/replication.ts: Replication, Confirmer"];
/** Abstract classes that stand for one class, or for none: a page break, and no abstraction. */
const FOR_ONE: string[] = [];
/** How many classes of src may be above one. */
const MOST_ABOVE = 2;
const DEEPER: string[] = [];
const root = fileURLToPath(new URL("../..", import.meta.url));

/** The room of a module in src, the innermost one; "": it is in none. */
const partOf = (file: string): string => {
  const path = file.slice("src/".length).replace(/\.ts$/, "");
  const rooms = LAYERS.flat().filter((room) => path === room || path.startsWith(`${room}/`));
  return rooms.sort((one, other) => other.length - one.length)[0] ?? "";
};
const isTool = (file: string): boolean => partOf(file).startsWith("tools/");
const depthOf = (part: string): number => LAYERS.findIndex((layer) => layer.includes(part));

const upward = (from: string): string[] =>
  [...readImports(from, "src")].flatMap(([file, targets]) =>
    targets
      .filter((to) => partOf(to) !== partOf(file) && depthOf(partOf(to)) <= depthOf(partOf(file)))
      .map((to) => `${file} → ${to}`),
  );

const copy = mkdtempSync(join(tmpdir(), "holdfast-architecture-"));
cpSync(join(root, "src"), join(copy, "src"), { recursive: true });
afterAll(() => rmSync(copy, { recursive: true }));

/** Adds this to a file of a copy of src, for the test that runs. Returns the folder of the copy. */
function planted(file: string, text: string): string {
  const path = join(copy, file);
  const before = existsSync(path) ? readFileSync(path) : null;
  onTestFinished(() => (before ? writeFileSync(path, before) : rmSync(path)));
  appendFileSync(path, text);
  return copy;
}

it("every module of src is in a room", () => {
  expect([...readImports(root, "src").keys()].filter((file) => partOf(file) === "")).toEqual([]);
});

it("imports go downwards only", () => {
  expect(upward(root).sort()).toEqual(UPWARD);
  const folder = planted("src/redis/replies.ts", 'import type { Hold } from "../core/lease/hold.ts";\n');
  expect(upward(folder)).toContain("src/redis/replies.ts → src/core/lease/hold.ts");
});

/** What tools import against the rule. Embedded scripts have their type from where it is. */
const hidden = (from: string): string[] =>
  [...readImports(from, "src")].flatMap(([file, targets]) =>
    (file.endsWith(".generated.ts") ? [] : targets)
      .filter((to) => isTool(file) && !isTool(to) && !FOR_TOOLS.test(to))
      .map((to) => `${partOf(file)} → ${partOf(to)}`),
  );

it("tools import what users do, src/inside.ts and src/util", () => {
  const further = Object.entries(FURTHER).flatMap(([tool, parts]) =>
    parts.map((part) => `${tool} → ${part}`),
  );
  expect([...new Set(hidden(root))].sort()).toEqual(further.sort());
  const folder = planted("src/tools/ui/views.ts", 'import { Lister } from "../../list/lister.ts";\n');
  expect(hidden(folder)).toContain("tools/ui → list");
});

/** What imports a Redis client library's driver, beside the driver itself. */
const bound = (from: string): string[] =>
  [...readImports(from, "src")].flatMap(([file, targets]) =>
    targets.some((to) => partOf(to).startsWith("redis/") && partOf(to) !== "redis/drivers") &&
    partOf(file) !== "redis/ioredis"
      ? [file]
      : [],
  );

it("only one file, and transactions, know which Redis client library is in use", () => {
  const known = ["connection-pool", "ioredis-source", "optimistic"].map(
    (file) => `src/optimistic/${file}.ts`,
  );
  expect(bound(root).sort()).toEqual([...known, "src/redis/drivers.ts"]);
  const line = 'import { isCluster } from "../redis/ioredis/connection.ts";\n';
  expect(bound(planted("src/list/glob.ts", line))).toContain("src/list/glob.ts");
});

it.each(["src", "demo", "benchmarks"])("no files of %s import each other in a cycle", (folder) => {
  const known = folder === "src" ? IN_CIRCLES : [];
  expect(circles(readImports(root, folder)).flat().sort()).toEqual(known);
});

it("the test finds a cycle of three files", () => {
  planted("src/util/clock.ts", 'export type { Timers } from "./planted.ts";\n');
  planted("src/util/planted.ts", 'export type { Timers } from "./print.ts";\n');
  const folder = planted("src/util/print.ts", 'export type { now } from "./clock.ts";\n');
  const circle = ["src/util/clock.ts", "src/util/planted.ts", "src/util/print.ts"];
  expect(circles(readImports(folder, "src"))).toContainEqual(circle);
});

/** The files that have several classes, with those. */
function severalClasses(from: string): Map<string, string> {
  const names = new Map<string, string[]>();
  for (const { file, name } of readClasses(from, "src")) names.set(file, [...(names.get(file) ?? []), name]);
  const several = [...names].filter(([, { length }]) => length > 1);
  return new Map(several.map(([file, all]) => [file, `${file}: ${all.join(", ")}`]));
}

it("a file of src has one class at most", () => {
  const several = severalClasses(root);
  for (const file of Object.keys(ONE_IDEA)) expect(several.delete(file), file).toBe(true);
  expect([...several.values()].sort()).toEqual(SEVERAL_CLASSES);
  const folder = planted("src/core/lease/watchdog.ts", "\nclass Planted {}\n");
  expect([...severalClasses(folder).values()]).toContain("src/core/lease/watchdog.ts: Watchdog, Planted");
});

function forOne(from: string): string[] {
  const classes = readClasses(from, "src");
  return classes
    .filter((one) => one.isAbstract && classes.filter(({ base }) => base === one).length < 2)
    .map(({ file, name }) => `${file}: ${name}`);
}

it("an abstract class has several subclasses", () => {
  expect(forOne(root).sort()).toEqual(FOR_ONE);
  const alone = "\nexport abstract class Planted {}\n";
  const folder = planted("src/core/lease/watchdog.ts", alone);
  expect(forOne(folder)).toContain("src/core/lease/watchdog.ts: Planted");
  const heir = 'import { Planted as Base } from "./lease/watchdog.ts";\nexport class One extends Base {}\n';
  planted("src/core/planted.ts", heir);
  expect(forOne(folder)).toContain("src/core/lease/watchdog.ts: Planted");
  planted("src/core/planted.ts", "export class Two extends Base {}\n");
  expect(forOne(folder)).not.toContain("src/core/lease/watchdog.ts: Planted");
});

const deeper = (from: string): string[] =>
  readClasses(from, "src")
    .filter((one) => inheritanceOf(one) > MOST_ABOVE)
    .map(({ file, name }) => `${file}: ${name}`);

it(`no class of src extends more than ${MOST_ABOVE} others, one above the other`, () => {
  expect(deeper(root).sort()).toEqual(DEEPER);
  const folder = planted("src/core/lease/watchdog.ts", "\nclass One {}\nclass Two extends One {}\n");
  planted("src/core/lease/watchdog.ts", "class Three extends Two {}\n");
  expect(deeper(folder).sort()).toEqual(DEEPER);
  planted("src/core/lease/watchdog.ts", "class Four extends Three {}\n");
  expect(deeper(folder)).toContain("src/core/lease/watchdog.ts: Four");
});

/** What the process has of them. A method of that name may be declared, and called of its object. */
const TIMERS =
  /(?<![."\w])(?:(?:set|clear)(?:Timeout|Interval|Immediate)\b(?!\(\w+: )|queueMicrotask\b)|process\.nextTick\b/g;
const CLOCKS_AND_DICE =
  /(?<![.\w])(?:(?:Date|performance)\.now\(|new Date\(\)|Math\.random\(|random(?:Bytes|UUID|Int|FillSync)\()/g;

const codeOf = (path: string): string => readFileSync(path, "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
const found = (text: string, what: RegExp): string[] => [
  ...new Set([...text.matchAll(what)].map(([name]) => name)),
];

/** The only files that have clocks, timers and randomness of the process. */
const SEAMS = ["src/util/clock.ts", "src/util/random.ts", "src/util/real-timers.ts"];

/**
 * What other files have of them. Fakes of an application's tests would reach timers, and its locks
 * hang; and in the world a run would not be the same again.
 */
const unsafe = (from: string): string[] =>
  [...readImports(from, "src").keys()]
    .filter((file) => !SEAMS.includes(file))
    .filter((file) => !isTool(file) || partOf(file) === "tools/testing")
    .flatMap((file) => {
      const text = codeOf(join(from, file));
      const [, imported = ""] = /^import \{([^}]*)\} from "[./a-z]*\/real-timers.ts";$/m.exec(text) ?? [];
      const names = found(text, TIMERS);
      if (text.includes("pTimeout(")) names.push("customTimers");
      // Of the testing tools only timers: a test that waits too long waits in real time.
      if (!isTool(file)) names.push(...found(text, CLOCKS_AND_DICE));
      return names.filter((name) => !imported.includes(name)).map((name) => `${file} ${name}`);
    });

it("clocks, timers and randomness come from three files, which no fakes replace", () => {
  expect(unsafe(root)).toEqual([]);
  for (const [line, what] of [
    ["setTimeout(() => {}, 1);", "setTimeout"],
    ["process.nextTick(() => {});", "process.nextTick"],
    ["Date.now();", "Date.now("],
  ])
    expect(unsafe(planted("src/redis/replies.ts", `\n${line}\n`))).toContain(`src/redis/replies.ts ${what}`);
});

it("of the world's files, few have real time and real randomness", () => {
  const files = readdirSync(join(root, "test/world"), { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !/^(differential|plants)\//.test(file),
  );
  const real = files.filter((file) => {
    const text = codeOf(join(root, "test/world", file));
    return found(text, TIMERS).length + found(text, CLOCKS_AND_DICE).length > 0;
  });
  // The search for new seeds; a turn of the event loop; what replaces them, and its test.
  expect(real.sort()).toEqual([
    "index.ts",
    "simulated-process.ts",
    "time.ts",
    "virtual-time.test.ts",
    "virtual-time.ts",
  ]);
});

/** The folders or files that a pattern names, up to its first wildcard; braces are alternatives. */
const pathsOf = (pattern: string): string[] => {
  const [, before = "", inside, after = ""] = /^(.*?)\{([^{}]*)\}(.*)$/.exec(pattern) ?? [];
  if (inside !== undefined) return inside.split(",").flatMap((one) => pathsOf(before + one + after));
  return [pattern.replace(/[^/]*\*.*$/, "")];
};

it("the suites of vitest.config.ts name existing folders and files", () => {
  expect(pathsOf("test/{a,b}/**/*.test.ts")).toEqual(["test/a/", "test/b/"]);
  const text = readFileSync(join(root, "vitest.config.ts"), "utf8");
  const patterns = [...text.matchAll(/"(test\/[^"]+)"/g)].map(([, pattern = ""]) => pattern);
  expect(patterns.length).toBeGreaterThan(9);
  expect(patterns.flatMap(pathsOf).filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

import { appendFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { launchServer } from "../../tools/redis/index.ts";
import { circles, readImports } from "../support/imports.ts";
import { tryLockPassage } from "../support/passage.ts";

// What docs/maintaining.md says of the layers. An exception that is not needed any more fails as well.

/** From above to below; each entry may import those behind it. "" is every other file that lies in src itself. */
const LAYERS = [
  ["cli"],
  ["otel", "prometheus"],
  ["exporters"],
  ["testing", "ui"],
  ["index"],
  ["client", "quorum", "redisson", "spin"],
  ["server"],
  ["base-client"],
  ["inside"],
  ["lock-client"],
  ["check"],
  ["election", "list"],
  ["locks", "kinds", "once"],
  ["deadlocks"],
  ["waiting"],
  ["telemetry"],
  ["lease", "fencing", "optimistic"],
  ["redis"],
  [""],
  ["util"],
];
/** They see of the package what users can import, what src/inside.ts names for them, and src/util. */
const TOOLS = ["cli", "ui", "testing", "otel", "prometheus", "exporters"];
/** What a tool may import of src by the rule, beside its own files and those of other tools. */
const FOR_TOOLS = /^src\/(inside\.ts$|(\w+\/)?index\.ts$|util\/)/;
/** What one needs besides. `testing` puts a memory in the place of Redis: it builds a client on it, and answers its scripts. */
const FURTHER: Record<string, string[]> = {
  testing: ["client", "options", "validate", "keys", "redis", "redisson", "spin"],
};
const UPWARD: string[] = ["src/util/stacks.ts → src/errors.ts"];
const IN_CIRCLES: string[] = [];
const MOST_LINES = 300;
const LONGER: string[] = ["src/cli/top.ts", "src/errors.ts", "src/events.ts"];
/** Of one warm, uncontended `tryLock()` and `unlock()`. */
const MOST_FILES = 20;
const MOST_ENTRIES = 78;

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The folder of a module in src, or its name where that is a layer of its own. */
const partOf = (file: string): string => {
  const [, first = "", second] = file.replace(/\.ts$/, "").split("/");
  return second !== undefined || LAYERS.flat().includes(first) ? first : "";
};
const depthOf = (part: string): number => LAYERS.findIndex((layer) => layer.includes(part));

const upward = (from: string): string[] =>
  [...readImports(from, "src")].flatMap(([file, targets]) =>
    targets
      .filter((to) => partOf(to) !== partOf(file) && depthOf(partOf(to)) <= depthOf(partOf(file)))
      .map((to) => `${file} → ${to}`),
  );

/** A copy of src in which a line is added to a file. */
function planted(file: string, line: string): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-architecture-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(join(root, "src"), join(folder, "src"), { recursive: true });
  appendFileSync(join(folder, file), line);
  return folder;
}

it("imports go downwards only", () => {
  expect(upward(root).sort()).toEqual(UPWARD);
  const folder = planted("src/redis/replies.ts", 'import type { Hold } from "../lease/hold.ts";\n');
  expect(upward(folder)).toContain("src/redis/replies.ts → src/lease/hold.ts");
});

/** What tools import against the rule. Embedded scripts have their type from where it is. */
const hidden = (from: string): string[] =>
  [...readImports(from, "src")].flatMap(([file, targets]) =>
    (file.endsWith(".generated.ts") ? [] : targets)
      .filter((to) => TOOLS.includes(partOf(file)) && !TOOLS.includes(partOf(to)) && !FOR_TOOLS.test(to))
      .map((to) => `${partOf(file)} → ${to.split(/[/.]/)[1]}`),
  );

it("tools import what users do, src/inside.ts and src/util", () => {
  const further = Object.entries(FURTHER).flatMap(([tool, parts]) =>
    parts.map((part) => `${tool} → ${part}`),
  );
  expect([...new Set(hidden(root))].sort()).toEqual(further.sort());
  const folder = planted("src/ui/views.ts", 'import { Lister } from "../list/lister.ts";\n');
  expect(hidden(folder)).toContain("ui → list");
});

it.each(["src", "demo", "benchmarks"])("no files of %s import each other in a circle", (folder) => {
  const known = folder === "src" ? IN_CIRCLES : [];
  expect(circles(readImports(root, folder)).flat().sort()).toEqual(known);
});

it("a circle of three files is found", () => {
  const folder = planted("src/util/clock.ts", 'export type { Timers } from "./planted.ts";\n');
  appendFileSync(join(folder, "src/util/planted.ts"), 'export type { Timers } from "./print.ts";\n');
  appendFileSync(join(folder, "src/util/print.ts"), 'export type { now } from "./clock.ts";\n');
  const circle = ["src/util/clock.ts", "src/util/planted.ts", "src/util/print.ts"];
  expect(circles(readImports(folder, "src"))).toContainEqual(circle);
});

it(`no file of src has more than ${MOST_LINES} lines`, () => {
  const longer = [...readImports(root, "src").keys()].filter((file) => {
    const lines = readFileSync(join(root, file), "utf8").trimEnd().split("\n").length;
    return lines > MOST_LINES && !file.endsWith(".generated.ts");
  });
  expect(longer.sort()).toEqual(LONGER);
});

/** What each file has of the global timers. Fakes of an application's tests would reach them, and its locks hang. */
const globalTimers = (from: string): string[] =>
  [...readImports(from, "src").keys()]
    .filter((file) => file !== "src/util/real-timers.ts")
    .filter((file) => !["cli", "ui", "exporters", "otel", "prometheus"].includes(partOf(file)))
    .flatMap((file) => {
      const text = readFileSync(join(from, file), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
      const [, imported = ""] = /^import \{([^}]*)\} from "[./a-z]*\/real-timers.ts";$/m.exec(text) ?? [];
      // A method of that name may be declared, and called of its object.
      const used = text.matchAll(/(?<![.\w])(?:set|clear)(?:Timeout|Interval|Immediate)\b(?!\(\w+: )/g);
      const names = new Set([...used].map(([name]) => name));
      if (text.includes("pTimeout(")) names.add("customTimers");
      return [...names].filter((name) => !imported.includes(name)).map((name) => `${file} ${name}`);
    });

it("timers are those of Node.js, which no fakes replace", () => {
  expect(globalTimers(root)).toEqual([]);
  expect(globalTimers(planted("src/redis/replies.ts", "\nsetTimeout(() => {}, 1);\n"))).toContain(
    "src/redis/replies.ts setTimeout",
  );
});

/** The folders or files that a pattern names, up to its first wildcard; braces are alternatives. */
const pathsOf = (pattern: string): string[] => {
  const [, before = "", inside, after = ""] = /^(.*?)\{([^{}]*)\}(.*)$/.exec(pattern) ?? [];
  if (inside !== undefined) return inside.split(",").flatMap((one) => pathsOf(before + one + after));
  return [pattern.replace(/[^/]*\*.*$/, "")];
};

it("the suites of vitest.config.ts name folders and files that are there", () => {
  expect(pathsOf("test/{a,b}/**/*.test.ts")).toEqual(["test/a/", "test/b/"]);
  const text = readFileSync(join(root, "vitest.config.ts"), "utf8");
  const patterns = [...text.matchAll(/"(test\/[^"]+)"/g)].map(([, pattern = ""]) => pattern);
  expect(patterns.length).toBeGreaterThan(9);
  expect(patterns.flatMap(pathsOf).filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

it("the common way of a lock is short", async ({ annotate }) => {
  // Of its own: other tests set the clock of tokens ahead, and a lock whose token is not the time has a longer way.
  const server = await launchServer();
  onTestFinished(() => server.stop());
  const { files, entries } = await tryLockPassage(server.url);
  await annotate(`${files.length} files, ${entries} function entries`);
  expect(files.length).toBeLessThanOrEqual(MOST_FILES);
  expect(entries).toBeLessThanOrEqual(MOST_ENTRIES);
});

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { checkReadme } from "../../tools/check/docs/code-checks.ts";
import { checkLinks } from "../../tools/check/docs/links.ts";
import { checkMeasured } from "../../tools/check/docs/measured.ts";
import { checkNames } from "../../tools/check/docs/names.ts";
import { checkOptions } from "../../tools/check/docs/option-checks.ts";
import { checkRaces } from "../../tools/check/docs/races.ts";
import { checkRecipes } from "../../tools/check/docs/recipes.ts";
import { checkTables } from "../../tools/check/docs/tables.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A project folder with these sources, and with pages of which one is changed. */
function changed(page: string, change: (text: string) => string): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-docs-"));
  folders.push(folder);
  for (const path of ["src", "lua", "tools", "proof", "page", "package.json", ".ci"])
    symlinkSync(join(root, path), join(folder, path));
  cpSync(join(root, "docs"), join(folder, "docs"), { recursive: true });
  cpSync(join(root, "README.md"), join(folder, "README.md"));
  const text = readFileSync(join(folder, page), "utf8");
  writeFileSync(join(folder, page), change(text));
  expect(change(text)).not.toBe(text);
  return folder;
}

describe("the check of the docs", () => {
  it("finds nothing in the present pages", () => {
    expect([...checkOptions(root), ...checkReadme(root), ...checkNames(root)]).toEqual([]);
  });

  it.each([
    ["docs/options.md", /^\| `grantWindow` .*\n/m, "docs/options.md: no row for the option grantWindow"],
    ["docs/optimistic.md", /^\| `retries` .*\n/m, "docs/optimistic.md: no row for the option retries"],
    ["docs/fencing.md", /^\| `remember` .*\n/m, "docs/fencing.md: no row for the option remember"],
    ["docs/events.md", /^\| `renew` .*\n/m, "docs/events.md: no row for the event renew"],
  ])("finds a missing row of %s", (page, row, problem) => {
    expect(checkOptions(changed(page, (text) => text.replace(row, "")))).toEqual([problem]);
  });

  it.each([
    [
      "docs/options.md",
      "| `grace` | 5 000 ",
      "| `grace` | 500 ",
      "the default of grace is 5000, the table says 500",
    ],
    [
      "docs/quorum.md",
      "| `nodeTimeout` | 400 ",
      "| `nodeTimeout` | 4 ",
      "the default of nodeTimeout is 400, the table says 4",
    ],
    [
      "docs/fencing.md",
      "| 86 400 000 ",
      "| 86 400 ",
      "the default of remember is 86400000, the table says 86 400",
    ],
  ])("finds a wrong default in %s", (page, from, to, problem) => {
    expect(checkOptions(changed(page, (text) => text.replace(from, to)))).toEqual([`${page}: ${problem}`]);
  });

  it("finds an unknown option and an unknown event", () => {
    const page = "| option | default | meaning |\n|---|---|---|\n| `speed` | 9 | faster |\n\n";
    expect(checkOptions(changed("docs/java.md", (text) => `${page}${text}`))).toEqual([
      "docs/java.md: a row for the option speed, which is not there",
    ]);
    expect(
      checkOptions(changed("docs/events.md", (text) => text.replace("| `renew`", "| `renewed`"))),
    ).toEqual([
      "docs/events.md: no row for the event renew",
      "docs/events.md: a row for the event renewed, which is not there",
    ]);
  });

  it("finds nothing wrong with the races of the protocol", () => {
    expect(checkRaces(root)).toEqual([]);
  });

  it.each([
    [
      "a file that is not there",
      "`src/core/line.ts`: `tellBusy`",
      "`src/core/queue.ts`: `tellBusy`",
      "a race is prevented in src/core/queue.ts, which is not there",
    ],
    [
      "a method that is not there",
      "`src/core/line.ts`: `tellBusy`",
      "`src/core/line.ts`: `tell`, `park`",
      "a race is prevented by tell of src/core/line.ts, which is not there",
    ],
    [
      "a script's function that is not there",
      "`lua/handoff/shared.lua`: `grantNext`",
      "`lua/handoff/shared.lua`: `grant`",
      "a race is prevented by grant of lua/handoff/shared.lua, which is not there",
    ],
    [
      "a file without a method",
      "`src/core/line.ts`: `tellBusy`",
      "`src/core/line.ts`",
      "a race names no method of src/core/line.ts",
    ],
    [
      "no file at all",
      "`src/wires/hold-scripts.ts`: `entryPrefix`",
      "`hold-scripts.ts`",
      "a race names no file and method that prevent it",
    ],
  ])("finds a race of the protocol with %s", (_, from, to, problem) => {
    const found = checkRaces(changed("docs/protocol.md", (text) => text.replace(from, to)));
    expect(found.map((text) => text.replace(/^[^ ]+ /, ""))).toEqual([problem]);
  });

  it("finds a race in a table that names no method, and counts no head of a table as a race", () => {
    const page = "docs/protocol-quorum.md";
    const found = checkRaces(changed(page, (text) => text.replace("`src/quorum/token-clock.ts`: `saw`", "")));
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(/^docs\/protocol-quorum\.md:\d+: a race names no file and method/);
  });

  it("finds a test of a fault that is not there, of whatever folder", () => {
    const folder = changed("docs/protocol-faults.md", (text) =>
      text.replace("`lock/resent-commands.faults` |", "`faults/server` |"),
    );
    symlinkSync(join(root, "test"), join(folder, "test"));
    expect(checkNames(folder)).toEqual(["docs/protocol-faults.md: there is no test faults/server"]);
  });

  it("finds a section of promises that has no row, or a row without a test", () => {
    const folder = changed("docs/protocol-faults.md", (text) =>
      text.replace(/^\| \[`fairLock`\].*\n/m, "").replace("| `lock/lock-format` |", "| `lock-format` |"),
    );
    symlinkSync(join(root, "test"), join(folder, "test"));
    const page = join(folder, "docs/scopes.md");
    writeFileSync(page, `${readFileSync(page, "utf8")}\n### News\n`);
    const none = 'docs/protocol-faults.md: no row "Which test" names a test of';
    expect(checkNames(folder)).toEqual([
      `${none} guarantees.md#fairlock`,
      `${none} scopes.md#news`,
      `${none} errors.md#lockformaterror-lock_format`,
    ]);
  });

  it("finds a source file that is not there, by its path, and on a maintainer's page by its name", () => {
    const text = "See src/core/queue.ts and `queue.ts`, src/core/line.ts and `line.ts`.\n";
    const missing = (page: string): string[] => {
      const folder = changed(page, (before) => `${text}${before}`);
      symlinkSync(join(root, "test"), join(folder, "test"));
      return checkNames(folder).filter((problem) => / file /.test(problem));
    };
    expect(missing("docs/java.md")).toEqual(["docs/java.md: there is no file src/core/queue.ts"]);
    expect(missing("docs/protocol.md")).toEqual([
      "docs/protocol.md: there is no file src/core/queue.ts",
      "docs/protocol.md: there is no file queue.ts",
    ]);
  });

  it("finds a dead link of Markdown and of HTML", () => {
    const folder = changed("docs/java.md", (text) => `[a](none.md) <img src="none.svg" alt="">\n${text}`);
    expect(checkLinks(folder).filter((problem) => problem.startsWith("docs/java.md:1:"))).toEqual([
      "docs/java.md:1: the link none.md points to nothing: there is no docs/none.md",
      "docs/java.md:1: the link none.svg points to nothing: there is no docs/none.svg",
    ]);
  });

  it("finds an unknown command and an unknown test", () => {
    const folder = changed(
      "docs/java.md",
      (text) => `npm run test:none, \`lock/none.faults\`, \`test/lock/none.test.ts\`\n${text}`,
    );
    symlinkSync(join(root, "test"), join(folder, "test"));
    expect(checkNames(folder)).toEqual([
      "docs/java.md: npm run test:none is not there",
      "docs/java.md: there is no test lock/none.faults",
      "docs/java.md: there is no test test/lock/none.test.ts",
    ]);
  });

  it("finds a table that an empty line breaks, a row with other cells, and text without a gap", () => {
    expect(checkTables(root)).toEqual([]);
    const table =
      "| a | b |\n|---|---|\n| 1 | 2 |\n\n| 3 | `x|y` |\n| 4 | 5 |\n\n| a |\n|---|\n| `x|y` |\nText.\n\n" +
      "| a | b |\n|---|---|\n| 1 |\n| 2 \\| 3 | 4 |\n## Head\n";
    expect(checkTables(changed("docs/java.md", (text) => table + text))).toEqual([
      "docs/java.md:5: a table without a ruler below its first row",
      "docs/java.md:10: 2 cells in a table of 1",
      "docs/java.md:11: text right below a table is its last row",
      "docs/java.md:15: 1 cells in a table of 2",
    ]);
  });

  it("finds a README that grows past 200 lines", () => {
    expect(checkReadme(changed("README.md", (text) => text + "more\n".repeat(200)))[0]).toMatch(
      /^README\.md: has \d+ lines, more than 200$/,
    );
  });

  it("finds a figure of the comparison that differs from the measurement, or is of a busy machine", () => {
    const row = "| lock and unlock, nobody else | 150 µs | 180 µs (1.2 ×) | never |";
    const folder = changed("README.md", (text) => `${text}${row}\n`);
    const measure = (ours: number, busy: number | null = null): string[] => {
      const rows = [{ about: "lock and unlock, nobody else", figures: [[ours, 150, 160], [180], "never"] }];
      mkdirSync(join(folder, "benchmarks/results"), { recursive: true });
      writeFileSync(join(folder, "benchmarks/results/table.json"), JSON.stringify({ rows, busy }));
      return checkMeasured(folder);
    };
    expect(measure(140)).toEqual([]);
    expect(measure(170)).toHaveLength(1);
    expect(measure(140, 0.5)).toEqual([
      expect.stringContaining("table.json: other processes used 50 % of the machine"),
    ]);
  });

  it("finds a recipe that differs from its program, and one that is not shown", () => {
    const folder = changed("docs/recipes.md", (text) =>
      text.replace("await locks.close({ grace: 1_000 })", "await locks.close()"),
    );
    mkdirSync(join(folder, "test"));
    for (const programs of ["test/recipes", "test/interop"])
      symlinkSync(join(root, programs), join(folder, programs));
    expect(checkRecipes(folder).map((problem) => problem.replace(/:\d+:/, ":"))).toEqual([
      "docs/recipes.md: differs from test/recipes/programs/shutdown.ts: npm run check:docs -- --fix",
    ]);
    const page = join(folder, "docs/recipes.md");
    writeFileSync(page, readFileSync(page, "utf8").replace(/^```ts recipe=shutdown.*?^```$/ms, ""));
    expect(checkRecipes(folder)).toEqual([
      "no page shows the region service of test/recipes/programs/shutdown.ts",
    ]);
  });
});

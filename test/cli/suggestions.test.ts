import { afterEach, expect, it } from "vitest";
import { closest } from "../../src/tools/cli/closest.ts";
import { COMMON } from "../../src/tools/cli/command.ts";
import { COMMANDS } from "../../src/tools/cli/commands.ts";
import { quoteWhole } from "../../src/util/quote.ts";
import { Cli, cli } from "../support/cli.ts";

// A command or an option that is mistyped.

afterEach(() => Cli.endAll());

const fails = async (...args: string[]): Promise<string> => {
  const { code, stderr } = await cli(...args).finished;
  expect(code).toBe(64);
  return stderr.trim();
};

it.each([
  ["insepct", "inspect"],
  ["isnpect", "inspect"],
  ["brake", "break"],
  ["list", "ls"],
  ["LS", "ls"],
  ["docter", "doctor"],
  ["comp", "completion"],
  ["rum", "run"],
  ["eelct", "elect"],
  ["hlep", "help"],
])("holdfast %s: did you mean %s?", async (typed, meant) => {
  const sentence = `There is no command '${typed}': did you mean ${meant}?`;
  expect(await fails(typed, "x")).toBe(`holdfast: ${sentence}`);
  if (meant !== "help") expect(await fails("help", typed)).toBe(`holdfast: ${sentence}`);
});

it.each([
  [["run", "--wiat", "5s", "x", "--", "true"], "--wiat", "--wait"],
  [["run", "--nowait", "x", "--", "true"], "--nowait", "--no-wait"],
  [["run", "--kill_after=5s", "x", "--", "true"], "--kill_after", "--kill-after"],
  [["ls", "--waitd"], "--waitd", "--waited"],
  [["inspect", "--josn", "x"], "--josn", "--json"],
  [["break", "--tok", "5", "x"], "--tok", "--token"],
  [["top", "--Sort", "name"], "--Sort", "--sort"],
  [["ui", "--quite"], "--quite", "--quiet"],
])("holdfast %j: %s, did you mean %s?", async (args, typed, meant) => {
  expect(await fails(...args)).toBe(`holdfast: Unknown option '${typed}': did you mean ${meant}?`);
});

it("the command line suggests nothing when no known word is close", async () => {
  for (const typed of ["nonsense", "x", "deploy", "q", "y".repeat(4_000)])
    expect(await fails(typed)).toBe(
      `holdfast: There is no command ${quoteWhole(typed)}: holdfast help lists them.`,
    );
  expect(await fails("ls", "--nonsense")).toBe(
    "holdfast: Unknown option '--nonsense': holdfast help ls lists them.",
  );
  expect(await fails("ls", "-z")).toBe("holdfast: Unknown option '-z': holdfast help ls lists them.");
  expect(await fails("ls", "--kind", "door")).toMatch(/^holdfast: --kind takes .*, not 'door'\.$/);
});

it.each([
  [["ls", "--sort", "wiat"], "--sort takes wait, held or name, not 'wiat': did you mean wait?"],
  [["ls", "--kind", "semaphor"], "not 'semaphor': did you mean semaphore?"],
  [["recall", "--kind", "readwrite", "x"], "not 'readwrite': did you mean readWrite?"],
  [
    ["run", "--on-loss", "wran", "x", "--", "true"],
    "--on-loss takes kill or warn, not 'wran': did you mean warn?",
  ],
  [["run", "--signal", "sigtrem", "x", "--", "true"], "not 'sigtrem': did you mean TERM?"],
  [["completion", "bsah"], "holdfast completion takes bash, zsh or fish, not 'bsah': did you mean bash?"],
  [["completion"], "holdfast completion takes bash, zsh or fish."],
])("the command line suggests words from a short list: %j", async (args, sentence) => {
  expect((await fails(...args)).slice(-sentence.length)).toBe(sentence);
});

it.each([
  [["--quiet", "ls"], "Option '--quiet' comes after the command: holdfast <command> --quiet."],
  [["-r", "redis://127.0.0.1:1", "ls"], "Option '-r' comes after the command: holdfast <command> -r."],
  [["--wait=5s", "run"], "Option '--wait' comes after the command: holdfast <command> --wait."],
  [["--hlep"], "Unknown option '--hlep': did you mean --help?"],
  [["--vresion"], "Unknown option '--vresion': did you mean --version?"],
  [["--nonsense"], "Unknown option '--nonsense': holdfast help lists them."],
])("the command line recognizes an option in the place of the command: %j", async (args, sentence) => {
  expect(await fails(...args)).toBe(`holdfast: ${sentence}`);
});

it.each([
  [["ls", "--sort"], "Option '--sort' needs a value."],
  [
    ["run", "-w", "-n", "x", "--", "true"],
    "Option '-w' needs a value: what comes after it begins with a dash.",
  ],
  [["ls", "--json=yes"], "Option '--json' takes no value."],
])("the command line reports a missing or surplus value: %j", async (args, sentence) => {
  expect(await fails(...args)).toBe(`holdfast: ${sentence}`);
});

it("the command line finds each word after one typing slip: a letter missing, added, wrong, or two swapped", () => {
  const commands = COMMANDS.map(({ name }) => name);
  for (const words of [commands, ...COMMANDS.map(({ flags }) => Object.keys({ ...flags, ...COMMON }))]) {
    const meant = new Map<string, string[]>();
    for (const word of words.filter(({ length }) => length > 3))
      for (const typed of slipsOf(word)) meant.set(typed, [...(meant.get(typed) ?? []), word]);
    for (const [typed, all] of meant)
      if (!words.includes(typed)) expect(all).toContain(closest(typed, words));
  }
});

const slipsOf = (word: string): string[] =>
  [...word].flatMap((one, i) => {
    const [head, tail] = [word.slice(0, i), word.slice(i + 1)];
    const swapped = `${head}${tail[0] ?? ""}${one}${tail.slice(1)}`;
    return [head + tail, `${head}${one}${one}${tail}`, `${head}~${tail}`, swapped];
  });

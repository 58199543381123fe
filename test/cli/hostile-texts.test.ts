import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { clientOf } from "../../src/redis/party.ts";
import { COMMANDS } from "../../src/tools/cli/commands.ts";
import { Output } from "../../src/tools/cli/output.ts";
import { quoteWhole } from "../../src/util/quote.ts";
import { visible } from "../../src/util/visible.ts";
import { Cli, sh } from "../support/cli.ts";
import { HOSTILE, UNPRINTABLE, worst } from "../support/hostile-texts.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// No text of others reaches a terminal as it is: every command, over names, labels and values that
// were made to harm.

const own = new OwnServer();
afterEach(() => Cli.endAll());

const NAME = worst("n");
/** Of 64 bytes at most. */
const LABEL = "l \x1b]0;t\x07\x9b1m\n\u202e\u2028\\'<b> ";
const held = `${NAME}held`;
const led = `${NAME}led`;

const start = (...args: string[]) => new Cli(own.url, args);
const run = (...args: string[]) => start(...args).finished;

/** What it wrote, when nothing of that could harm. `but`: what it writes on purpose. */
async function harmless(of: Promise<{ stdout: string; stderr: string }>, but = /(?!)/g): Promise<string> {
  const { stdout, stderr } = await of;
  for (const text of [stdout, stderr]) expect(text.replace(but, "")).not.toMatch(UNPRINTABLE);
  return stdout + stderr;
}

/** The same of what says that name, which everybody can tell from others. */
async function says(name: string, of: Promise<{ stdout: string; stderr: string }>): Promise<string> {
  const text = await harmless(of);
  expect(
    [visible(name), quoteWhole(name).slice(1, -1)].some((shown) => text.includes(shown)),
    text,
  ).toBe(true);
  return text;
}

beforeEach(async () => {
  await own.admin.flushall();
  const { locks } = await own.parties.join({ url: own.url, client: { label: LABEL } });
  await locks.lock(held).lock();
  await locks.election(led).campaign({ value: NAME });
});

/** A few calls of each command, with texts that were made to harm wherever it takes one, or shows one. */
const CALLS: Readonly<Record<string, () => Promise<void>>> = {
  run: async () => {
    expect(await says(held, run("run", "--no-wait", held, "--", "true"))).toContain(visible(LABEL));
    await says(NAME, run("run", "-v", NAME, "--", "true"));
    await says(NAME, run("run", "x", "--", NAME));
    await says(NAME, run("run", "--wait", NAME, "x", "--", "true"));
    const waiting = start("run", held, "--", "true");
    await waiting.says("Waiting for");
    waiting.kill("SIGTERM");
    await says(held, waiting.finished);
    const { locks } = await own.parties.join({ url: own.url });
    // The holder is told who ended its hold, unless its first renewal finds that before.
    for (let text = ""; !/ by 'l .*'/.test(text); ) {
      const losing = start("run", NAME, "--", "sh", "-c", "echo runs; sleep 60");
      await losing.says("runs");
      // It is told only when it listens.
      const client = clientOf((await locks.lock(NAME).inspect()).holder ?? { id: "" });
      const listeners = async () =>
        ((await own.admin.call("PUBSUB", "NUMSUB", `holdfast:client:${client}`)) as unknown[])[1];
      await until(listeners, { what: "the holder to listen" });
      await locks.lock(NAME).forceUnlock({ label: LABEL });
      text = await harmless(losing.finished);
      // A message shows a long name in part, in quotes.
      expect(text).toMatch(/Lock 'n .*…' was lost: (.* by 'l .*'|its key is gone)/);
    }
    await harmless(run("run", "--json", "--no-wait", held, "--", "true"));
  },
  elect: async () => {
    const observing = start("elect", "--observe", led);
    await until(() => observing.stdout !== "");
    observing.kill("SIGTERM");
    await says(NAME, observing.finished);
    const waiting = start("elect", led, "--", "true");
    await waiting.says("Waiting for");
    waiting.kill("SIGTERM");
    await says(led, waiting.finished);
    await says(NAME, run("elect", NAME, "--", "true"));
  },
  ls: async () => {
    const text = await says(held, run("ls"));
    expect(text).toContain(visible(LABEL));
    expect(text).toContain(visible(led));
    await harmless(run("ls", "--plain"), /\t/g);
    await says(`x${NAME}`, run("ls", `x${NAME}`));
    const { stdout } = await run("ls", "--json", "--sort", "name");
    await harmless(run("ls", "--json"));
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).name),
    ).toEqual([held, led]);
    await says(NAME, run("ls", "--sort", NAME));
  },
  top: async () => {
    await harmless(run("top"), /\t/g);
    const terminal = Cli.inTerminal(own.url, ["top", "--sort", "name"]);
    const keys = async (typed: string, said: string | RegExp) => {
      terminal.child.stdin?.write(typed);
      await terminal.says(said);
    };
    await terminal.says("> n ");
    await keys(`/<b>\x9b1m\u202e`, "/<b>1m_");
    await keys(`${"\x7f".repeat(5)}\r`, /b>1m_.*> n/s);
    await keys("b", "Type its name");
    await keys(`${visible(held)}\r`, "Force-released ");
    await keys("q", "");
    await says(
      held,
      terminal.finished.then((all) => ({ ...all, stdout: all.stdout.replace(OWN, "") })),
    );
  },
  inspect: async () => {
    expect(await says(held, run("inspect", held))).toContain(visible(LABEL));
    await says(led, run("inspect", led));
    await says(NAME, run("inspect", NAME));
    const { stdout } = await run("inspect", "--json", held);
    expect(stdout).not.toMatch(UNPRINTABLE);
    expect(JSON.parse(stdout)).toMatchObject({ name: held, holder: { label: LABEL } });
  },
  break: async () => {
    await says(NAME, run("break", NAME, "--yes"));
    await says(held, run("break", held));
    await says(held, run("break", held, "--token", "1", "--yes"));
    const terminal = Cli.inTerminal(own.url, ["break", held]);
    await terminal.says("Type the name");
    terminal.child.stdin?.write(`${visible(held)}\r`);
    const { code, stdout } = await terminal.finished;
    // What is typed is written by the terminal.
    expect(stdout.replaceAll(OF_PROMPT, "")).not.toMatch(UNPRINTABLE);
    expect([code, stdout]).toEqual([0, expect.stringContaining(`Force-released ${quoteWhole(held)}.`)]);
    expect(await harmless(run("break", led, "--yes", "--json"))).not.toBe("");
  },
  recall: async () => {
    await says(held, run("recall", held));
    await says(NAME, run("recall", NAME));
    await harmless(run("recall", "--json", held));
  },
  doctor: async () => {
    await own.admin.persist(`holdfast:{${encodeURIComponent(held)}}`);
    await says(held, run("doctor"));
    await harmless(run("doctor", "--json"));
    await harmless(run("doctor", "--sentinel", NAME));
  },
  ui: async () => {
    await harmless(run("ui", "--host", NAME));
    await says(NAME, run("ui", "--port", NAME));
  },
  completion: async () => {
    await harmless(run("completion", NAME));
    // Scripts for shells, which read tabs and line feeds alone.
    for (const shell of ["bash", "zsh", "fish"]) await harmless(run("completion", shell));
  },
};

const ESC = "\x1b";
/** What `top` draws its screen with. */
const OWN = new RegExp(`${ESC}\\[(?:\\?(?:1049|25)[hl]|[HKJ])|\r`, "g");
/** What a line is edited with. */
const OF_PROMPT = new RegExp(`${ESC}\\[\\d*[GKJ]|\r`, "g");

it("the test calls every command", () => {
  expect(Object.keys(CALLS)).toEqual(COMMANDS.map(({ name }) => name));
});

it.each(Object.keys(CALLS))("holdfast %s prints names, labels and values harmlessly", (name) =>
  CALLS[name]?.(),
);

it("the command line prints an unknown command or option harmlessly", async () => {
  await says(NAME, run(NAME));
  await says(NAME, run("help", NAME));
  await says(NAME, run("ls", `--${NAME}`));
  await says(
    "x",
    run("--json", NAME).then((all) => ({ ...all, stderr: `${all.stderr}x` })),
  );
});

it("ls prints hostile names all differently, in lines with the same columns", async () => {
  await own.admin.flushall();
  const { locks } = await own.parties.join({ url: own.url });
  for (const name of HOSTILE) await locks.lock(name).lock();
  const text = await harmless(run("ls", "--sort", "name"));
  const [titles = "", ...lines] = text.trimEnd().split("\n");
  const width = titles.indexOf("KIND");
  expect(titles).toMatch(/^NAME +KIND/);
  const names = (await harmless(run("ls", "--plain"), /\t/g))
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t")[0]);
  expect(new Set(names).size).toBe(HOSTILE.length);
  expect([...names].sort()).toEqual(HOSTILE.map(visible).sort());
  expect(lines).toHaveLength(HOSTILE.length);
  expect(width).toBeGreaterThan(0);
  for (const line of lines) expect(line).toMatch(/ lock /);
});

it("ls puts colours only outside of escaped text", () => {
  vi.stubEnv("NO_COLOR", "");
  vi.stubEnv("TERM", "xterm");
  const { isTTY } = process.stdout;
  process.stdout.isTTY = true;
  onTestFinished(() => {
    vi.unstubAllEnvs();
    process.stdout.isTTY = isTTY;
  });
  const output = new Output({});
  const text = "\x1b[32mn\x9b1m";
  const escaped = "\\u001b[32mn\\u009b1m";
  expect(output.line({ style: "red", text }, text)).toBe(`${ESC}[31m${escaped}${ESC}[39m${escaped}`);
  expect(new Output({ "no-color": true }).line({ style: "red", text })).toBe(escaped);
});

it("run reports a loss harmlessly while its command runs", async () => {
  const running = sh([], NAME, "echo runs; sleep 60");
  await running.says("runs");
  running.kill("SIGTERM");
  await harmless(running.finished);
});

import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Cli, cli, lives, temporary } from "../support/cli.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { until } from "../support/until.ts";

const parties = new Parties();
afterAll(parties.close);
afterEach(() => Cli.endAll());

const candidate = (name: string, line: string, ...flags: string[]) =>
  cli("elect", "--lease", "3s", ...flags, name, "--", "sh", "-c", line);

const LEADING = "echo leads $HOLDFAST_TOKEN; exec sleep 600";

describe("holdfast elect", () => {
  it("runs the command of one candidate; the next one leads when that process ends, and observers see both", async () => {
    const name = freshName();
    const observer = cli("elect", "--observe", "--json", name);
    await observer.says("null");
    const first = candidate(name, LEADING, "--value", "one");
    await first.says(/leads \d+/);
    await observer.says(`"value":"one"`);
    const second = candidate(name, LEADING, "--value", "two");
    await second.says(`led by`);
    expect(second.stdout).toBe("");
    first.kill("SIGTERM");
    expect((await first.finished).code).toBe(143);
    await second.says(/leads \d+/);
    await observer.says(`"value":"two"`);
    observer.kill("SIGINT");
    expect((await observer.finished).code).toBe(130);
    second.kill("SIGTERM");
    await second.finished;
  });

  it("stops the command when it loses the lead, and runs it again when it leads again", async () => {
    const name = freshName();
    const { redis } = await parties.join();
    // A signal that came before the loss was the command's, and does not end the candidacy.
    const run = candidate(
      name,
      `trap "echo reloaded" HUP; echo leads $HOLDFAST_TOKEN; while :; do sleep 0.05; done`,
    );
    await run.says(/leads \d+/);
    run.kill("SIGHUP");
    await run.says("reloaded");
    await redis.del(`holdfast:election:{${name}}`);
    await until(() => run.stdout.match(/leads \d+/g)?.length === 2);
    const [before, after] = [...run.stdout.matchAll(/leads (\d+)/g)].map(([, token]) => Number(token));
    expect(after).toBeGreaterThan(before ?? Number.NaN);
    run.kill("SIGTERM");
    expect((await run.finished).code).toBe(143);
  });

  it("in a container, started as docs/recipes.md says, SIGTERM reaches the command, which may end in its own way, and the term ends with it", async () => {
    const recipes = readFileSync(new URL("../../docs/recipes.md", import.meta.url), "utf8");
    const of = (word: string): string => new RegExp(`^${word} (.*)$`, "m").exec(recipes)?.[1] ?? "";
    const line: string[] = [of("ENTRYPOINT"), of("CMD")].flatMap((part) => JSON.parse(part));
    const srv = temporary();
    // As npm installs it.
    for (const folder of ["holdfast", ".bin"])
      mkdirSync(join(srv, "node_modules", folder), { recursive: true });
    const program = join(srv, "node_modules/holdfast/cli.mjs");
    copyFileSync(Cli.program, program);
    chmodSync(program, 0o755);
    symlinkSync("../holdfast/cli.mjs", join(srv, "node_modules/.bin/holdfast"));
    const scheduler = `
      const still = setInterval(() => {}, 1_000);
      process.on("SIGTERM", () => { console.log("stopped in peace"); clearInterval(still); });
      console.log("pid " + process.pid);`;
    writeFileSync(join(srv, "scheduler.js"), scheduler);
    const name = freshName();
    const container = new Cli(testUrl(), [], { cwd: srv }, () =>
      line.map((word) => (word === "scheduler" ? name : word.replace(`${of("WORKDIR")}/`, `${srv}/`))),
    );
    await container.says(/pid \d+\n/);
    const { locks } = await parties.join();
    expect(await locks.election(name).leader()).not.toBeNull();
    container.kill("SIGTERM");
    const { code, stdout } = await container.finished;
    expect([code, stdout]).toEqual([0, expect.stringContaining("stopped in peace")]);
    expect(lives(Number(/pid (\d+)/.exec(stdout)?.[1]))).toBe(false);
    expect(await locks.election(name).leader()).toBeNull();
  });

  it("exits with the command's exit code, and ends its term", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const run = await candidate(name, "exit 6", "--json").finished;
    expect(run.code).toBe(6);
    expect(run.stderr).toContain(`"outcome":"exited"`);
    expect(await locks.election(name).leader()).toBeNull();
  });

  it("with --json prints its line even if the command does not exist", async () => {
    const run = await cli("elect", "--json", freshName(), "--", "/nowhere/at-all").finished;
    expect(run).toMatchObject({ code: 127, stderr: expect.stringContaining(`"outcome":"not-run"`) });
    expect(run.stderr).not.toContain("Leads");
  });

  it("a signal while it waits withdraws the candidate", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    await using _ = await locks.election(name).campaign({ value: "here" });
    const run = candidate(name, LEADING);
    await run.says("led by");
    run.kill("SIGTERM");
    expect(await run.finished).toMatchObject({ code: 143, stdout: "" });
  });

  it.each([
    [["elect"], /one name/],
    [["elect", "a", "b", "--", "true"], /one name/],
    [["elect", "a"], /what to run/],
    [["elect", "--observe", "a", "--", "true"], /runs nothing/],
  ])("refuses %j with one sentence", async (args, sentence) => {
    const { code, stderr } = await cli(...args).finished;
    expect(code).toBe(64);
    expect(stderr).toMatch(sentence);
  });
});

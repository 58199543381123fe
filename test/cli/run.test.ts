import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Cli, lives, temporary } from "../support/cli.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// `holdfast run` as a process, with real commands: what it promises of exit codes, signals, streams and the environment.

const parties = new Parties();
afterAll(parties.close);

const cli = (...args: string[]) => new Cli(testUrl(), args);
/** Runs a line of the shell. */
const sh = (flags: string[], name: string, line: string) =>
  cli("run", ...flags, name, "--", "sh", "-c", line);

describe("the exit code", () => {
  it.each([
    ["the command's", "exit 7", 7],
    ["128 + n where signal n has ended it", "kill -9 $$", 137],
    ["0", "true", 0],
    ["its own also where the program has a meaning for it", "exit 75", 75],
  ])("is %s", async (_, line, code) => {
    expect((await sh([], freshName(), line).finished).code).toBe(code);
  });

  it("is 127 for a command that is not there, and 126 for one that cannot be run", async () => {
    const name = freshName();
    const missing = await cli("run", name, "--", "/nowhere/at-all").finished;
    expect(missing).toMatchObject({ code: 127, stderr: expect.stringContaining("no such command") });
    const file = join(temporary(), "data");
    writeFileSync(file, "no program");
    expect((await cli("run", name, "--", file).finished).code).toBe(126);
    const { locks } = await parties.join();
    expect(await locks.lock(name).isLocked()).toBe(false);
  });

  it("is 75, or what -E says, where somebody else has the lock all the time", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    await using _ = await locks.lock(name).lock();
    expect((await sh(["--no-wait"], name, "true").finished).code).toBe(75);
    const moved = await sh(["-w", "100ms", "-E", "3", "--json"], name, "true").finished;
    expect(moved.code).toBe(3);
    expect(moved.stderr).toContain(`held by `);
    expect(lastJson(moved.stderr)).toMatchObject({ outcome: "busy", code: 3, names: [name] });
  });

  it("is 69 where Redis does not answer", async () => {
    const away = new Cli("redis://127.0.0.1:1", ["run", "--no-wait", "--json", "x", "--", "true"]);
    const { code, stderr } = await away.finished;
    expect(code).toBe(69);
    expect(lastJson(stderr)).toMatchObject({ outcome: "unavailable", code: 69 });
  });

  it("with --json has its line also where the command line makes no sense", async () => {
    const { code, stderr } = await cli("run", "--json", "-w", "1s", "-n", "a", "--", "true").finished;
    expect(code).toBe(64);
    expect(lastJson(stderr)).toMatchObject({ outcome: "usage", code: 64, names: ["a"] });
  });

  it("is 69 where Redis does not have the database", async () => {
    const url = new URL("/99999", testUrl()).href;
    const { code, stderr } = await new Cli(url, ["run", freshName(), "--", "true"]).finished;
    expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringContaining("refuses database 99999") });
  });

  it("is 79 where the lock is taken by force: the command gets the first signal at once", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const run = sh(
      ["--json", "-s", "USR1"],
      name,
      'trap "exit 0" USR1; echo ready; while :; do sleep 0.05; done',
    );
    await run.says("ready");
    await locks.lock(name).forceUnlock();
    const { code, stderr } = await run.finished;
    expect(code).toBe(79);
    expect(stderr).toContain("forceUnlock");
    expect(lastJson(stderr)).toMatchObject({ outcome: "lost", code: 79 });
  });

  it("with --on-loss warn is the command's, which goes on", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const run = sh(["--on-loss", "warn", "--json"], name, "echo ready; read line; echo went on; exit 4");
    await run.says("ready");
    await locks.lock(name).forceUnlock();
    await run.says("goes on");
    run.child.stdin?.end("\n");
    const { code, stdout, stderr } = await run.finished;
    expect({ code, stdout }).toEqual({ code: 4, stdout: "ready\nwent on\n" });
    expect(lastJson(stderr)).toMatchObject({ outcome: "lost", code: 4 });
  });

  it("is 124 behind --max-hold; a command that ignores the signal is killed", async () => {
    const flags = ["--max-hold", "300ms", "--kill-after", "200ms"];
    const run = await sh(flags, freshName(), 'trap "" TERM; echo ready; while :; do sleep 0.05; done')
      .finished;
    expect(run.code).toBe(124);
  });

  it.each([
    [["a"], /what to run/],
    [["--", "true"], /which lock/],
    [["a", "--"], /what to run/],
    [["--nonsense", "a", "--", "true"], /Unknown option/],
    [["--wait", "5", "a", "--", "true"], /time with its unit/],
    [["--wait", "1s", "--no-wait", "a", "--", "true"], /give one of them/],
    [["--slots", "0", "a", "--", "true"], /from 1 to/],
    [["--slots", "2", "--shared", "a", "--", "true"], /different kinds/],
    [["--every", "1h", "--slots", "2", "a", "--", "true"], /different kinds/],
    [["--shared", "--exclusive", "a", "--", "true"], /different kinds/],
    [["--every", "1h", "--wait", "1s", "a", "--", "true"], /never waits/],
    [["--every", "1h", "a", "b", "--", "true"], /one name/],
    [["--slots", "2", "a", "b", "--", "true"], /one name/],
    [["--slots", "2", "--fair", "a", "--", "true"], /order of coming/],
    [["--shared", "--min-hold", "1s", "a", "--", "true"], /plain locks/],
    [["--aligned", "a", "--", "true"], /--every/],
    [["--shell", "true", "a", "--", "true"], /already/],
    [["--signal", "SIGNOTHING", "a", "--", "true"], /name of a signal/],
    [["--lease", "10ms", "a", "--", "true"], /1s at least/],
    [["--lease", "2s", "--kill-after", "1500ms", "a", "--", "true"], /half of the lease/],
    [["--max-hold", "0", "a", "--", "true"], /more than 0/],
    [["--on-loss", "ignore", "a", "--", "true"], /kill or warn/],
    [["x".repeat(600), "--", "true"], /512 bytes/],
    [["--redis", "http://nowhere", "a", "--", "true"], /redis:\/\//],
    [["--redis", "redis://localhost/abc", "a", "--", "true"], /number of a database/],
    [["--redis", "redis://localhost/?db=3", "a", "--", "true"], /number of a database/],
    [["--redis", "redis://u:%ZZ@localhost", "a", "--", "true"], /%25/],
    [["--redis", "redis://a,redis://b", "a", "--", "true"], /--cluster/],
  ])("is 64, with one sentence, for %j", async (args, sentence) => {
    const { code, stdout, stderr } = await cli("run", ...args).finished;
    expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
    expect(stderr).toMatch(sentence);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });
});

describe("the command", () => {
  it("is run without a shell, with its arguments as they are", async () => {
    const program = "console.log(JSON.stringify(process.argv.slice(1)))";
    const args = ["$HOME", "a  b", "*", "--wait", "'\"", ""];
    const { stdout } = await cli("run", freshName(), "--", process.execPath, "-e", program, "--", ...args)
      .finished;
    expect(JSON.parse(stdout)).toEqual(args);
  });

  it("with --shell is a line of the shell", async () => {
    const { stdout } = await cli("run", "-c", "echo one | tr o 0", freshName()).finished;
    expect(stdout).toBe("0ne\n");
  });

  it("has this program's streams, in which nothing else stands but what goes to stderr", async () => {
    const run = sh(["-v"], freshName(), "cat; echo wrong >&2");
    run.child.stdin?.end("through");
    const { stdout, stderr } = await run.finished;
    expect(stdout).toBe("through");
    expect(stderr.split("\n").filter((line) => line !== "" && !line.startsWith("holdfast: "))).toEqual([
      "wrong",
    ]);
  });

  it("finds lock, token and lease in its environment", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const line = 'printf "%s|%s|%s" "$HOLDFAST_LOCK" "$HOLDFAST_TOKEN" "$HOLDFAST_LEASE_MS"; read line';
    const run = sh(["--lease", "20s"], name, line);
    await run.says(name);
    const { token, remaining } = await locks.lock(name).inspect();
    expect(remaining).toBeGreaterThan(10_000);
    run.child.stdin?.end("\n");
    expect((await run.finished).stdout).toBe(`${name}|${token}|20000`);
  });

  it("finds the token of each of several locks, which are all or none", async () => {
    const [a, b] = [freshName("a"), freshName("b")];
    const { locks } = await parties.join();
    const run = cli(
      "run",
      a,
      b,
      "--",
      "sh",
      "-c",
      'echo "$HOLDFAST_LOCK"; echo "$HOLDFAST_TOKEN"; read line',
    );
    await until(() => run.stdout.trim().split("\n").length === 4);
    const tokens = await Promise.all([a, b].map(async (name) => (await locks.lock(name).inspect()).token));
    expect(run.stdout).toBe([a, b, ...tokens, ""].join("\n"));
    run.child.stdin?.end("\n");
    await run.finished;
    expect(await locks.lock(a).isLocked()).toBe(false);
    await using _ = await locks.lock(b).lock();
    expect((await cli("run", "--no-wait", a, b, "--", "true").finished).code).toBe(75);
    expect(await locks.lock(a).isLocked()).toBe(false);
  });

  it("keeps the lock until all that it has started is gone", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const run = sh([], name, "sleep 600 & echo $!");
    await until(() => /^\d+\n/.test(run.stdout));
    await run.says("still run");
    expect(await locks.lock(name).isLocked()).toBe(true);
    process.kill(Number(run.stdout), "SIGKILL");
    expect((await run.finished).code).toBe(0);
    expect(await locks.lock(name).isLocked()).toBe(false);
  });
});

describe("a signal", () => {
  const [TERM, INT, HUP, QUIT, USR1] = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1"] as const;

  it.each([
    [TERM, 143],
    [INT, 130],
    [HUP, 129],
    [QUIT, 131],
    [USR1, 138],
  ])("%s ends the waiting: the place in the queue is left, the exit code is %i", async (signal, code) => {
    const name = freshName();
    const { locks } = await parties.join();
    await using _ = await locks.lock(name).lock();
    const run = sh([], name, "echo ran");
    await until(async () => (await locks.lock(name).inspect()).waiters.length === 1);
    run.kill(signal);
    expect(await run.finished).toMatchObject({ code, stdout: "" });
    expect((await locks.lock(name).inspect()).waiters).toEqual([]);
  });

  it.each([
    [TERM, 143],
    [HUP, 129],
    [QUIT, 131],
  ])("%s reaches all that the command has started, exit code %i", async (signal, code) => {
    // A shell in a shell; what a shell runs behind its back ignores some of these.
    const run = sh([], freshName(), "sh -c 'echo $$; sleep 600; true'; true");
    await until(() => /^\d+\n/.test(run.stdout));
    run.kill(signal);
    expect((await run.finished).code).toBe(code);
    expect(lives(Number(run.stdout))).toBe(false);
  });

  it("that has ended the command ends this program too, so that a shell ends its loop for Ctrl-C", async () => {
    const run = sh([], freshName(), "echo ready; exec sleep 600");
    await run.says("ready");
    run.kill("SIGINT");
    expect(await run.finished).toMatchObject({ code: 130, signal: "SIGINT" });
  });

  it("is the command's to judge: it may end as it likes", async () => {
    const run = sh([], freshName(), 'trap "echo bye; exit 5" TERM; echo ready; while :; do sleep 0.05; done');
    await run.says("ready");
    run.kill("SIGTERM");
    expect(await run.finished).toMatchObject({ code: 5, stdout: expect.stringContaining("bye") });
  });
});

describe("while it waits", () => {
  it("it says for which holder", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const lease = await locks.lock(name).lock();
    const run = sh([], name, "true");
    await run.says(new RegExp(`Waiting for ${name}, held by .*:${process.pid}`));
    await lease.unlock();
    expect((await run.finished).code).toBe(0);
  });

  it("-q says nothing", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    await using _ = await locks.lock(name).lock();
    expect((await sh(["-q", "-w", "700ms"], name, "true").finished).stderr).toBe("");
  });
});

describe("a run inside of another one", () => {
  const inside = (...args: string[]) => ["--", process.execPath, Cli.program, ...args];

  it("borrows the lock of the same name", async () => {
    const name = freshName();
    const outer = await cli("run", name, ...inside("run", name, "--", "sh", "-c", "echo $HOLDFAST_TOKEN"))
      .finished;
    expect(outer.code).toBe(0);
    expect(outer.stdout).toMatch(/^\d+\n$/);
  });

  it.each([
    ["a further lock", [], (name: string) => [name, `${name}:2`]],
    ["a slot of the same semaphore", ["--slots", "2"], (name: string) => ["--slots", "2", name]],
    ["the write lock under the read lock", ["--shared"], (name: string) => ["--exclusive", name]],
  ])("does not wait for it with %s", async (_, flags, args) => {
    const name = freshName();
    const outer = await cli("run", ...flags, name, ...inside("run", ...args(name), "--", "true")).finished;
    expect(outer).toMatchObject({ code: 64, stderr: expect.stringContaining("for ever") });
  });

  it("takes the lock where the run around it does not hold it any more", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const stale = [{ kind: "lock", name, token: 17 }];
    await using _ = await locks.lock(name).lock();
    const env = { HOLDFAST_HOLD: JSON.stringify(stale) };
    expect((await new Cli(testUrl(), ["run", "-n", name, "--", "true"], { env }).finished).code).toBe(75);
  });
});

describe("the kinds", () => {
  it("--slots lets so many in", async () => {
    const name = freshName();
    const first = sh(["--slots", "2"], name, "echo in; read line");
    const second = sh(["--slots", "2"], name, "echo in; read line");
    await Promise.all([first.says("in"), second.says("in")]);
    expect((await sh(["--slots", "2", "-n"], name, "true").finished).code).toBe(75);
    expect(await sh(["--slots", "3", "-n"], name, "true").finished).toMatchObject({
      code: 64,
      stderr: expect.stringContaining("permits"),
    });
    for (const run of [first, second]) run.child.stdin?.end("\n");
    await Promise.all([first.finished, second.finished]);
  });

  it("--shared lets readers in together, and no --exclusive one", async () => {
    const name = freshName();
    const reader = sh(["--shared"], name, "echo in; read line");
    await reader.says("in");
    expect((await sh(["--shared", "-n"], name, "true").finished).code).toBe(0);
    expect((await sh(["--exclusive", "-n"], name, "true").finished).code).toBe(75);
    reader.child.stdin?.end("\n");
    await reader.finished;
  });

  it("--every runs it once; a run that fails is tried again behind its lease", async () => {
    const name = freshName();
    const runs = await Promise.all(
      [1, 2, 3].map(() => sh(["--every", "1h", "--json"], name, "echo ran").finished),
    );
    expect(runs.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(runs.map(({ stdout }) => stdout).sort()).toEqual(["", "", "ran\n"]);
    const outcomes = runs.map(({ stderr }) => (lastJson(stderr) as { outcome: string }).outcome);
    expect(outcomes.sort()).toEqual(["exited", "skipped", "skipped"]);

    const failing = freshName();
    const once = ["--every", "1h", "--lease", "1s"];
    expect((await sh(once, failing, "exit 9").finished).code).toBe(9);
    await until(async () => (await sh(once, failing, "echo again").finished).stdout === "again\n");
  });

  it("--min-hold keeps the others out behind the end", async () => {
    const name = freshName();
    await sh(["--min-hold", "10s"], name, "true").finished;
    expect((await sh(["-n"], name, "true").finished).code).toBe(75);
  });
});

/** The last line. */
const lastJson = (text: string): unknown => JSON.parse(text.trim().split("\n").at(-1) ?? "");

afterEach(() => Cli.endAll());

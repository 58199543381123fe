import { spawnSync } from "node:child_process";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Cli, cli, lives, sh } from "../support/cli.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// `holdfast run` as a process, with real commands: what it promises of signals, streams and the environment.

const parties = new Parties();
afterAll(parties.close);
afterEach(() => Cli.endAll());

describe("the command", () => {
  it("is run without a shell, with its arguments as they are", async () => {
    const program = "console.log(JSON.stringify(process.argv.slice(1)))";
    const args = ["$HOME", "a  b", "*", "--wait", "'\"", ""];
    const { stdout } = await cli("run", freshName(), "--", process.execPath, "-e", program, "--", ...args)
      .finished;
    expect(JSON.parse(stdout)).toEqual(args);
  });

  it("is a line of the shell with --shell", async () => {
    const { stdout } = await cli("run", "-c", "echo one | tr o 0", freshName()).finished;
    expect(stdout).toBe("0ne\n");
  });

  it("has this program's streams; the program itself writes only to stderr", async () => {
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

  it("finds the tokens of several locks, which are acquired all or none", async () => {
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
    // A call that does not wait has 500 ms, which a busy machine may exceed: then Redis is unavailable.
    const tries = async () => (await cli("run", "--no-wait", a, b, "--", "true").finished).code;
    const code = await until(async () => [await tries()].find((one) => one !== 69));
    expect(code).toBe(75);
    expect(await locks.lock(a).isLocked()).toBe(false);
  });

  it("keeps the lock until all processes that it has started have ended", async () => {
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
  ])("%s ends the wait: the place in the queue is given up, the exit code is %i", async (signal, code) => {
    const name = freshName();
    const { locks } = await parties.join();
    await using _ = await locks.lock(name).lock();
    const run = sh([], name, "echo ran");
    await until(async () => (await locks.lock(name).inspect()).waiters?.length === 1);
    run.kill(signal);
    expect(await run.finished).toMatchObject({ code, stdout: "" });
    expect((await locks.lock(name).inspect()).waiters).toEqual([]);
  });

  it.each([
    [TERM, 143],
    [HUP, 129],
    [QUIT, 131],
  ])("%s reaches all processes that the command has started, exit code %i", async (signal, code) => {
    // A shell in a shell; what a shell runs behind its back ignores some of these.
    const run = sh([], freshName(), "sh -c 'echo $$; sleep 600; true'; true");
    await until(() => /^\d+\n/.test(run.stdout));
    run.kill(signal);
    expect((await run.finished).code).toBe(code);
    expect(lives(Number(run.stdout))).toBe(false);
  });

  it("that ended the command also ends this program, so that Ctrl-C ends a shell loop", async () => {
    const run = sh([], freshName(), "echo ready; exec sleep 600");
    await run.says("ready");
    run.kill("SIGINT");
    expect(await run.finished).toMatchObject({ code: 130, signal: "SIGINT" });
  });

  it("is handled by the command, which may end in its own way", async () => {
    const run = sh([], freshName(), 'trap "echo bye; exit 5" TERM; echo ready; while :; do sleep 0.05; done');
    await run.says("ready");
    run.kill("SIGTERM");
    expect(await run.finished).toMatchObject({ code: 5, stdout: expect.stringContaining("bye") });
  });
});

const asProcess1 = ["unshare", "--fork", "--pid", "--mount-proc"];

it.skipIf(spawnSync("unshare", [...asProcess1.slice(1), "true"]).status !== 0)(
  "a run works as process 1 of a container, and from cron, without a terminal and stdin",
  async () => {
    const name = freshName();
    // What it leaves behind becomes a child of process 1 that nobody collects.
    const line =
      '(sleep 0.1 &); read line || echo "no stdin, parent $PPID"; kill -TERM $PPID; exec sleep 600';
    const args = ["run", "--json", name, "--", "sh", "-c", line];
    const bare = ["env", "-u", "HOME", "-u", "TERM", "sh", "-c", 'exec "$@" <&-', "sh"];
    const run = new Cli(testUrl(), args, {}, (line) => [...asProcess1, ...bare, ...line]);
    const { code, stdout, stderr } = await run.finished;
    expect({ code, stdout }).toEqual({ code: 143, stdout: "no stdin, parent 1\n" });
    expect(stderr).toContain(`"outcome":"exited","code":143`);
    const { locks } = await parties.join();
    expect(await locks.lock(name).isLocked()).toBe(false);
  },
);

describe("while it waits", () => {
  it("it names the holder that it waits for", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const lease = await locks.lock(name).lock();
    const run = sh([], name, "true");
    await run.says(new RegExp(`Waiting for '${name}': held by .*:${process.pid}\\.`));
    await lease.unlock();
    expect((await run.finished).code).toBe(0);
  });

  it("it is silent with -q", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    await using _ = await locks.lock(name).lock();
    expect((await sh(["-q", "-w", "700ms"], name, "true").finished).stderr).toBe("");
  });
});

const UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc"];
const mayUnshare = spawnSync(UNSHARE[0] ?? "", [...UNSHARE.slice(1), "true"]).status === 0;

it.skipIf(!mayUnshare).each(["run", "elect"])(
  "as process 1 of a container, %s says that zombies stay, and how they do not",
  async (how) => {
    const args = [how, freshName(), "--", "echo", "ran"];
    const { code, stdout, stderr } = await new Cli(testUrl(), args, {}, (line) => [...UNSHARE, ...line])
      .finished;
    expect({ code, stdout }).toEqual({ code: 0, stdout: "ran\n" });
    expect(stderr).toMatch(/^holdfast: As process 1 .*\(docker run --init\)\.$/m);
    expect((await cli(...args).finished).stderr).not.toContain("process 1");
  },
);

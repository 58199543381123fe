import { spawnSync } from "node:child_process";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Cli, lives } from "../support/cli.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// With a terminal: the command stays in its foreground group, so keys reach it from the terminal, once.

const parties = new Parties();
afterAll(parties.close);
afterEach(() => Cli.endAll());

/** util-linux's `script` gives its command a terminal, and types there what it reads. */
const hasScript = /util-linux/.test(spawnSync("script", ["--version"], { encoding: "utf8" }).stdout ?? "");

const CTRL_C = "\x03";
/** Says each signal that it gets, and ends soon behind the first. */
const COUNTING = `
process.on("SIGINT", () => { console.log("got INT"); setTimeout(() => process.exit(9), 300); });
process.on("SIGTERM", () => { console.log("got TERM"); setTimeout(() => process.exit(8), 300); });
setInterval(() => {}, 1000);
console.log("ready " + process.pid);
`;

describe.skipIf(!hasScript)("in a terminal", () => {
  it("Ctrl-C reaches the command once, and its exit code is this program's", async () => {
    const name = freshName();
    const terminal = Cli.inTerminal(testUrl(), ["run", name, "--", process.execPath, "-e", COUNTING]);
    await terminal.says("ready");
    terminal.child.stdin?.write(CTRL_C);
    const { code, stdout } = await terminal.finished;
    expect(stdout.match(/got INT/g)).toHaveLength(1);
    expect(code).toBe(9);
    const { locks } = await parties.join();
    expect(await locks.lock(name).isLocked()).toBe(false);
  });

  it("Ctrl-C while it waits ends the waiting", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    await using _ = await locks.lock(name).lock();
    const terminal = Cli.inTerminal(testUrl(), ["run", name, "--", "echo", "ran"]);
    await terminal.says("Waiting for");
    terminal.child.stdin?.write(CTRL_C);
    expect((await terminal.finished).code).toBe(130);
    expect((await locks.lock(name).inspect()).waiters).toEqual([]);
  });

  it.each([
    ["a shell is between", ""],
    ["a shell gives it a group of its own", "set -m; "],
  ])("a loss ends all processes that the command has started, also when %s", async (_, first) => {
    const name = freshName();
    const { locks } = await parties.join();
    const line = `${first}sh -c 'trap "" TERM; echo pid $$; while :; do sleep 0.1; done'; true`;
    const args = ["run", "--kill-after", "300ms", "--shell", line, name];
    const terminal = Cli.inTerminal(testUrl(), args);
    await terminal.says(/pid \d+/);
    const pid = Number(/pid (\d+)/.exec(terminal.stdout)?.[1]);
    await locks.lock(name).forceUnlock();
    expect((await terminal.finished).code).toBe(79);
    await until(() => !lives(pid));
  });

  it("an orphan that was in the terminal's group before is neither waited for nor killed", async () => {
    const before = `(trap "" HUP; sleep 600 >/dev/null 2>&1 </dev/null & echo neighbour $!)`;
    const args = ["run", "--max-hold", "300ms", freshName(), "--", "sleep", "600"];
    const terminal = Cli.inTerminal(testUrl(), args, before);
    await terminal.says(/neighbour \d+/);
    const pid = Number(/neighbour (\d+)/.exec(terminal.stdout)?.[1]);
    expect((await terminal.finished).code).toBe(124);
    expect(lives(pid)).toBe(true);
    process.kill(pid, "SIGKILL");
  });

  it("top redraws the locks, filters by what the user types, and restores the terminal", async () => {
    // No lock of another test is among them.
    const own = freshName();
    const [one, two] = [`${own}:one`, `${own}:two`];
    const { locks } = await parties.join();
    const lease = await locks.multiLock([one, two]).lock();
    const terminal = Cli.inTerminal(testUrl(), ["top", `${own}:*`, "--sort", "name"]);
    await terminal.says(one);
    await terminal.says(two);
    terminal.child.stdin?.write("/");
    terminal.child.stdin?.write("nothing");
    await terminal.says("/nothing");
    terminal.child.stdin?.write(`${"\x7f".repeat("nothing".length)}\r`);
    await until(() => terminal.stdout.lastIndexOf(`> ${one}`) > terminal.stdout.lastIndexOf("/n"));
    terminal.child.stdin?.write("b");
    await terminal.says(`${one}: `);
    await terminal.says("Type its name to force-release it: _");
    terminal.child.stdin?.write("y\r");
    await terminal.says("That is not the name: nothing was done.");
    terminal.child.stdin?.write(`b${one}`);
    await terminal.says(`Type its name to force-release it: ${one}_`);
    terminal.child.stdin?.write("\x1b");
    await terminal.says("Nothing was done.");
    expect(await locks.lock(one).isLocked()).toBe(true);
    terminal.child.stdin?.write(`b${one}x\x7f\r`);
    await terminal.says(`Force-released '${one}'.`);
    expect([await locks.lock(one).isLocked(), await locks.lock(two).isLocked()]).toEqual([false, true]);
    // No other lock takes the place of the one that was selected.
    const row = new RegExp(`\\n[ >] ${one}`);
    await until(() => !row.test(terminal.stdout.slice(terminal.stdout.lastIndexOf("NAME"))));
    terminal.child.stdin?.write("b");
    await terminal.says("That lock has gone");
    terminal.child.stdin?.write("/nothing\r");
    await until(
      () => terminal.stdout.lastIndexOf("/nothing  ") > terminal.stdout.lastIndexOf("Force-released"),
    );
    terminal.child.stdin?.write("q");
    const { code, stdout } = await terminal.finished;
    expect(code).toBe(0);
    expect(stdout.slice(stdout.lastIndexOf("/nothing"))).not.toContain(one);
    expect(stdout.trimEnd().endsWith("\x1b[?25h\x1b[?1049l")).toBe(true);
    await lease.unlock().catch(() => {});
  });

  it("top names the lock in its question even in a small window", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    await using _ = await locks.lock(name).lock();
    const terminal = Cli.inTerminal(testUrl(), ["top", name], "stty cols 40");
    await terminal.says(`> ${name.slice(0, 8)}`);
    terminal.child.stdin?.write("b");
    await terminal.says(new RegExp(`${name.slice(0, 20)}[^\r\n]*… Type`));
  });
});

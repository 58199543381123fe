import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Cli, cli, lastJson, programBeside, sh, temporary } from "../support/cli.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";

// What `holdfast run` exits with, and what its line of JSON says of it.

const parties = new Parties();
afterAll(parties.close);
afterEach(() => Cli.endAll());

describe("the exit code", () => {
  it.each([
    ["the command's", "exit 7", 7],
    ["128 + n if signal n has ended it", "kill -9 $$", 137],
    ["0", "true", 0],
    ["its own also if the program has a meaning for it", "exit 75", 75],
  ])("is %s", async (_, line, code) => {
    expect((await sh([], freshName(), line).finished).code).toBe(code);
  });

  it("is 69 where neither ioredis nor node-redis is installed, and the message says what to install", async () => {
    const alone = programBeside();
    const { code, stderr, stdout } = await new Cli(testUrl(), ["ls"], {}, ([node = ""]) => [
      node,
      alone,
      "ls",
    ]).finished;
    expect([code, stdout]).toEqual([69, ""]);
    expect(stderr.trim()).toBe(
      "holdfast: The command holdfast needs a Redis client library in the project, and there is none: npm install ioredis, or npm install redis.",
    );
  });

  it("is 127 for a command that does not exist, and 126 for one that cannot be run", async () => {
    const name = freshName();
    const missing = await cli("run", name, "--", "/nowhere/at-all").finished;
    expect(missing).toMatchObject({ code: 127, stderr: expect.stringContaining("no such command") });
    const file = join(temporary(), "data");
    writeFileSync(file, "no program");
    expect((await cli("run", name, "--", file).finished).code).toBe(126);
    const { locks } = await parties.join();
    expect(await locks.lock(name).isLocked()).toBe(false);
  });

  it("is 75, or the value of -E, when another holder has the lock throughout the wait", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    await using _ = await locks.lock(name).lock();
    expect((await sh(["--no-wait"], name, "true").finished).code).toBe(75);
    const moved = await sh(["-w", "100ms", "-E", "3", "--json"], name, "true").finished;
    expect(moved.code).toBe(3);
    expect(moved.stderr).toContain(`Could not get '${name}': held by ${hostname()}:${process.pid}.\n`);
    expect(lastJson(moved.stderr)).toMatchObject({ outcome: "busy", code: 3, names: [name] });
  });

  it("comes with a message that names the lock and its holder by label, host and process", async () => {
    const name = freshName();
    const { locks } = await parties.join({ client: { label: "charge" } });
    await using _ = await locks.lock(name).lock();
    const { stderr } = await sh(["--no-wait"], name, "true").finished;
    expect(stderr).toBe(
      `holdfast: Could not get '${name}': held by charge (${hostname()}:${process.pid}).\n`,
    );
  });

  it("is 69 when Redis does not answer", async () => {
    const away = new Cli("redis://127.0.0.1:1", ["run", "--no-wait", "--json", "x", "--", "true"]);
    const { code, stderr } = await away.finished;
    expect(code).toBe(69);
    expect(lastJson(stderr)).toMatchObject({ outcome: "unavailable", code: 69 });
  });

  it("with --json, a line is printed even for a wrong command line", async () => {
    const { code, stderr } = await cli("run", "--json", "-w", "1s", "-n", "a", "--", "true").finished;
    expect(code).toBe(64);
    expect(lastJson(stderr)).toMatchObject({ outcome: "usage", code: 64, names: ["a"] });
  });

  it("is 69 when Redis does not have the database", async () => {
    const url = new URL("/99999", testUrl()).href;
    const { code, stderr } = await new Cli(url, ["run", freshName(), "--", "true"]).finished;
    expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringContaining("refuses database 99999") });
  });

  it("is 79 after a force-release; the command gets the first signal at once", async () => {
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

  it("with --on-loss warn, is that of the command, which goes on", async () => {
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

  it("is 124 after --max-hold; a command that ignores the signal is killed", async () => {
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
    [["--slots", "2", "--fair", "a", "--", "true"], /first come, first served anyway/],
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
    [["--redis", "redis://localhost/?tls=true", "a", "--", "true"], /parameter 'tls'/],
    [["--redis", "redis://u:%ZZ@localhost", "a", "--", "true"], /%25/],
    [["--redis", "redis://a,redis://b", "a", "--", "true"], /--cluster/],
  ])("is 64, with one sentence, for %j", async (args, sentence) => {
    const { code, stdout, stderr } = await cli("run", ...args).finished;
    expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
    expect(stderr).toMatch(sentence);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });
});

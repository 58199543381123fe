import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Cli, cli, lastJson, sh } from "../support/cli.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// The kinds of locks that `holdfast run` runs a command under, and a run inside of another one.

const parties = new Parties();
afterAll(parties.close);
afterEach(() => Cli.endAll());

describe("a run inside another run", () => {
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
    expect(outer).toMatchObject({ code: 64, stderr: expect.stringContaining("forever") });
  });

  it("takes the lock if the run around it no longer holds it", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const stale = [{ kind: "lock", name, token: 17 }];
    await using _ = await locks.lock(name).lock();
    const env = { HOLDFAST_HOLD: JSON.stringify(stale) };
    expect((await new Cli(testUrl(), ["run", "-n", name, "--", "true"], { env }).finished).code).toBe(75);
  });

  it("takes a slot of its own if the slot around it belongs to another client", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    await using _ = await locks.semaphore(name, { permits: 2 }).acquire();
    const args = ["run", "-n", "--slots", "2", name, "--", "true"];
    const codeIn = async (client: string): Promise<number | null> => {
      const env = { HOLDFAST_HOLD: JSON.stringify([{ kind: "permit", name, client }]) };
      return (await new Cli(testUrl(), args, { env }).finished).code;
    };
    expect([await codeIn("host:1:0123456789abcdef"), await codeIn(locks.id)]).toEqual([0, 64]);
  });

  it("has no token with a slot, not even that of the run around it", async () => {
    const [name, slots] = [freshName(), freshName()];
    const line = 'echo "$HOLDFAST_LOCK $HOLDFAST_LEASE_MS $(printenv HOLDFAST_TOKEN || echo none)"';
    const nested = inside("run", "--json", "--slots", "2", slots, "--", "sh", "-c", line);
    const outer = await cli("run", name, ...nested).finished;
    expect([outer.stdout, outer.code]).toEqual([`${slots} 30000 none\n`, 0]);
    expect(lastJson(outer.stderr)).toMatchObject({ outcome: "exited", tokens: [] });
  });
});

describe("the kinds", () => {
  it("--slots admits up to that many runs", async () => {
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

  it("--shared admits readers together, and excludes --exclusive", async () => {
    const name = freshName();
    const reader = sh(["--shared"], name, "echo in; read line");
    await reader.says("in");
    expect((await sh(["--shared", "-n"], name, "true").finished).code).toBe(0);
    expect((await sh(["--exclusive", "-n"], name, "true").finished).code).toBe(75);
    reader.child.stdin?.end("\n");
    await reader.finished;
  });

  it("--every runs it once per interval; a failed run is retried after its lease", async () => {
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
});

import { execFileSync, spawnSync } from "node:child_process";
import { hostname } from "node:os";
import { Redis } from "ioredis";
import { afterAll, afterEach, describe, expect, it, onTestFinished } from "vitest";
import { redissonLock } from "../../src/redisson.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { setScene } from "../page/scene.ts";
import { Cli, temporary } from "../support/cli.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { keepAlways } from "../support/kept-reads.ts";
import { running } from "../support/result-runs.ts";
import { until } from "../support/until.ts";

// What people look with: ls, inspect, break, ask, doctor, completion.

const parties = new Parties();
afterAll(parties.close);
afterEach(() => Cli.endAll());

const cli = (...args: string[]) => new Cli(testUrl(), args).finished;
const lines = (text: string) => text.split("\n").filter(Boolean);

/** A lock with a holder and one waiter. */
async function contended(name: string) {
  const { locks } = await parties.join({ client: { label: "nightly" } });
  const { locks: others } = await parties.join({ client: { label: "daily" } });
  const lease = await locks.lock(name).lock();
  const next = others.lock(name).lock();
  await until(() => lease.wanted.aborted); // it hears of waiters, so also of a forced end
  return { locks, lease, next };
}

describe("ls and inspect", () => {
  it("show holders, times and waiters to people and as JSON", async () => {
    const [busy, quiet] = [freshName("busy"), freshName("quiet")];
    const { locks, lease, next } = await contended(busy);
    await using _ = await locks.semaphore(quiet, { permits: 3 }).acquire(2);

    const { stdout } = await cli("ls", busy);
    expect(lines(stdout)).toHaveLength(2);
    expect(stdout).toMatch(new RegExp(`^NAME .*\\n${busy} +lock +nightly \\(.*:${process.pid}\\) .* 1 `));
    const [json] = lines((await cli("ls", "--json", busy)).stdout).map((line) => JSON.parse(line));
    expect(json).toMatchObject({
      name: busy,
      kind: "lock",
      holder: { label: "nightly", token: lease.token },
      waiters: [{ label: "daily" }],
    });
    expect((await cli("ls", "--plain", quiet)).stdout.split("\t").slice(0, 2)).toEqual([quiet, "2/3 slots"]);
    expect((await cli("ls", "--waited", quiet)).stdout).toBe("");

    const seen = await cli("inspect", busy);
    expect(seen.stdout).toMatch(
      /held for .* by nightly .*token \d+.*\n {2}1 waiting process:\n {2}1\. daily .* waits/,
    );
    expect(JSON.parse((await cli("inspect", "--json", quiet)).stdout)).toMatchObject({
      kind: "semaphore",
      permits: 3,
      holders: [{ units: 2 }],
    });
    expect((await cli("inspect", freshName())).stdout).toContain("is free");
    await lease.unlock();
    await (await next).unlock();
  });

  it("show no control characters from names and labels", async () => {
    const name = `${freshName()}\x1b[2J\r\n\t\x7f\x9b\u202e`;
    const { locks } = await parties.join();
    await using _ = await locks.lock(name).lock();
    for (const args of [
      ["inspect", name],
      ["inspect", "--json", name],
      ["ls", `${name.slice(0, 40)}*`],
      ["ls", "--plain", `${name.slice(0, 40)}*`],
    ])
      expect((await cli(...args)).stdout).not.toMatch(/[^\P{Cc}\n\t]|\u202e/u);
    // Escaped and not left out, so that it is not taken for another name.
    expect((await cli("inspect", name)).stdout).toContain("\\u001b[2J\\u000d\\u000a\\u0009");
    expect(JSON.parse((await cli("inspect", "--json", name)).stdout).name).toBe(name);
  });
});

it("an answer that nothing is there says where it looked, without the password", async () => {
  const server = await launchServer({ args: ["--requirepass", "sesame"] });
  try {
    const { host } = new URL(server.url);
    const where = `(${host}, database 2, prefix hf:)`;
    for (const [line, sentence] of [
      ["ls", `No lock is held or waited for ${where}.`],
      ["ls order:*", `No lock like 'order:*' is held or waited for ${where}.`],
      ["inspect x", `x is free ${where}.`],
      ["recall x", `x is free ${where}.`],
      ["break x --yes", `No process holds 'x' ${where}: nothing was done.`],
    ] as const) {
      const args = [...line.split(" "), "--prefix", "hf:"];
      const { stdout, stderr } = await new Cli(`redis://:sesame@${host}/2`, args).finished;
      expect((stdout + stderr).replace("holdfast: ", "")).toBe(`${sentence}\n`);
    }
  } finally {
    await server.stop();
  }
});

describe("break", () => {
  it("force-releases the holder that was shown, and none with another token", async () => {
    const name = freshName();
    const { lease, next } = await contended(name);
    expect(await cli("break", name)).toMatchObject({ code: 64, stderr: expect.stringContaining("--yes") });
    expect((await cli("break", name, "--yes", "--token", String(lease.token + 1))).code).toBe(75);
    expect(lease.held).toBe(true);
    const { code, stdout } = await cli(
      "break",
      name,
      "--yes",
      "--json",
      "--label",
      "alice",
      "--token",
      String(lease.token),
    );
    expect([code, JSON.parse(stdout)]).toEqual([0, { name, broken: 1 }]);
    await until(() => lease.signal.aborted);
    expect(lease.signal.reason).toMatchObject({ reason: "revoked", by: "alice" });
    await (await next).unlock();
    await lease.unlock().catch(() => {});
  });

  it("names an unknown user at an unknown host where the runtime refuses both names", async () => {
    const name = freshName();
    const { lease, next } = await contended(name);
    const refuse = `import os from "node:os"; import { syncBuiltinESMExports } from "node:module";
      os.hostname = os.userInfo = process.getuid = () => { throw new Error("NotCapable"); };
      syncBuiltinESMExports();`;
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(refuse)}` };
    const broken = new Cli(testUrl(), ["break", name, "--yes"], { env });
    expect(await broken.finished).toMatchObject({ code: 0 });
    await until(() => lease.signal.aborted);
    expect(lease.signal.reason).toMatchObject({ reason: "revoked", by: "unknown@unknown" });
    await (await next).unlock();
  });

  it("says which waiter has the lock next, or that it is free", async () => {
    const name = freshName();
    const { lease, next } = await contended(name);
    const said = async (...args: string[]) => (await cli("break", "--yes", ...args)).stderr;
    const heir = `Next: daily (${hostname()}:${process.pid})`;
    expect(await said(name)).toBe(`holdfast: Force-released '${name}'. ${heir}.\n`);
    expect(await said(name)).toBe(`holdfast: Force-released '${name}'. It is free.\n`);
    await Promise.allSettled([lease.unlock(), (await next).unlock()]);
  });

  it("exits with 75 where no process holds the lock, and says so", async () => {
    const name = freshName();
    expect(await cli("break", "--yes", name)).toMatchObject({
      code: 75,
      stderr: `holdfast: No process holds '${name}' (${new URL(testUrl()).host}): nothing was done.\n`,
    });
    expect(await cli("break", "--yes", "--json", name)).toMatchObject({
      code: 75,
      stdout: `${JSON.stringify({ name, broken: 0 })}\n`,
    });
  });

  it("force-releases the leader of an election and the holder of a Redisson lock that were shown", async () => {
    const [election, java] = [freshName("election"), freshName("java")];
    const { locks } = await parties.join();
    const term = await locks.election(election).campaign();
    const lease = await redissonLock(locks, java).lock();
    const wrong = await cli("break", election, "--yes", "--token", String(term.token - 1));
    expect([wrong.code, term.held]).toEqual([75, true]);
    expect((await cli("break", election, "--yes")).code).toBe(0);
    await until(() => term.signal.aborted);
    expect((await cli("break", java, "--yes", "--kind", "redisson")).code).toBe(0);
    expect(await redissonLock(locks, java).isLocked()).toBe(false);
    await lease.unlock().catch(() => {});
  });

  it("shows and stops the run of a result, and never shows the result", async () => {
    const name = freshName("result");
    const { locks } = await parties.join();
    const { run, ended } = await running(locks, name, { label: "charge" });
    expect((await cli("ls", name, "--kind", "remember")).stdout).toMatch(/ remember .* charge/);
    expect((await cli("inspect", name)).stdout).toMatch(/ charge/);
    const wrong = await cli("break", name, "--yes", "--token", String(run.token - 1));
    expect([wrong.code, run.held]).toEqual([75, true]);
    expect((await cli("break", name, "--yes", "--label", "alice")).code).toBe(0);
    expect(await ended).toMatchObject({ code: "LOCK_LOST", by: "alice" });
    const secret = "a refresh token";
    await locks.remember(name, { keep: 60_000 }, () => secret);
    for (const args of [
      ["ls", name],
      ["ls", "--json"],
      ["inspect", name],
      ["inspect", "--json", name],
    ]) {
      const { stdout, stderr } = await cli(...args);
      expect(stdout + stderr).not.toContain(secret);
    }
  });

  it.skipIf(process.platform !== "linux")("asks the user to type the name", async () => {
    const name = freshName();
    const { lease, next } = await contended(name);
    const refused = Cli.inTerminal(testUrl(), ["break", name]);
    await refused.says("Type the name");
    refused.child.stdin?.write("yes\r");
    expect((await refused.finished).code).toBe(75);
    expect(lease.held).toBe(true);
    const broken = Cli.inTerminal(testUrl(), ["break", name]);
    await broken.says("Type the name");
    broken.child.stdin?.write(`${name}\r`);
    expect((await broken.finished).code).toBe(0);
    await (await next).unlock();
    await lease.unlock().catch(() => {});
  });
});

it("recall reports by its exit code whether the lock is in use", async () => {
  const name = freshName();
  const { locks } = await parties.join({ client: { linger: 1_500 } });
  const lease = await locks.lock(name).lock();
  expect(await cli("recall", name)).toMatchObject({
    code: 75,
    stderr: expect.stringContaining("is in use"),
  });
  await lease.unlock();
  expect((await cli("recall", "--json", name)).code).toBe(0);
});

it("recall makes readers release unused cached reads, and reports a waiting writer", async () => {
  keepAlways();
  const name = freshName();
  const { locks } = await parties.join({ client: { linger: 1_500 } });
  const { read, write } = locks.readWriteLock(name);
  const recall = async () => {
    const { code, stdout } = await cli("recall", "--json", "--kind", "readWrite", name);
    return { code, ...JSON.parse(stdout) };
  };
  const reader = await read.lock();
  expect(await recall()).toEqual({ code: 75, name, answer: "busy" });
  await reader.unlock();
  // On a busy machine the program begins behind the end of what was kept.
  await until(async () => {
    await read.withLock(() => {});
    const { code, answer } = await recall();
    expect({ code, answer }).toEqual({ code: 0, answer: expect.stringMatching(/released|free/) });
    return answer === "released";
  });
  expect(await locks.readWriteLock(name).inspect()).toMatchObject({ holders: [], waiters: [] });
  await using _ = await write.lock();
  expect((await recall()).answer).toBe("busy");
});

it("ls ends quietly when its reader has read enough", async () => {
  const server = await launchServer();
  const redis = new Redis(server.url);
  onTestFinished(async () => {
    redis.disconnect();
    await server.stop();
  });
  // More than a pipe takes without a reader.
  const names = Array.from({ length: 3_000 }, (_, i) => `lock:${String(i).padStart(4, "0")}`);
  await setScene(
    redis,
    names.map((name) => ({ name, by: ["api-1", 1], held: 1_000, left: 600_000 })),
  );
  for (const flags of [[], ["--json"], ["--json", "--sort", "name"], ["--plain"]]) {
    const bash = ["bash", "-o", "pipefail", "-c", '"$@" | head -n 1', "bash"];
    const { code, stdout, stderr } = await new Cli(server.url, ["ls", ...flags], {}, (line) => [
      ...bash,
      ...line,
    ]).finished;
    expect({ code, lines: lines(stdout).length, stderr }).toEqual({ code: 0, lines: 1, stderr: "" });
  }
});

it("inspect and break do not call a name free where they may not look at semaphores", async () => {
  const server = await launchServer();
  const redis = new Redis(server.url);
  try {
    const { locks } = await parties.join({ url: server.url });
    await locks.semaphore("pool", { permits: 1 }).acquire();
    await redis.call("ACL", "SETUSER", "few", "on", ">sesame", "~*", "&*", "+@all", "-hgetall");
    const url = server.url.replace("://", "://few:sesame@");
    for (const args of [
      ["inspect", "pool"],
      ["break", "pool", "--yes"],
    ]) {
      const { code, stdout, stderr } = await new Cli(url, args).finished;
      expect([code, stdout]).toEqual([69, ""]);
      expect(stderr).toMatch(/No lock .*has the name 'pool', and whether a .*semaphore.* has it is unknown/);
    }
    const { code, stdout } = await new Cli(url, ["inspect", "pool", "--kind", "lock"]).finished;
    expect([code, stdout]).toEqual([0, `pool is free (${new URL(url).host}).\n`]);
  } finally {
    redis.disconnect();
    await parties.close();
    await server.stop();
  }
});

describe("doctor", () => {
  it("finds no problem with a Redis that suits locks, and measures it", async () => {
    const server = await launchServer({ args: ["--appendonly", "yes"] });
    try {
      const { code, stdout, stderr } = await new Cli(server.url, ["doctor"]).finished;
      expect([lines(stdout).filter((line) => !line.startsWith("✔")), stderr]).toEqual([[], ""]);
      expect(stdout).toMatch(
        /round trip takes [\d.]+ ms[\s\S]*handed over to a waiter in [\d.]+ ms[\s\S]*message takes [\d.]+ ms/,
      );
      expect(code).toBe(0);
    } finally {
      await server.stop();
    }
  });

  it("reports each problem and its remedy", async () => {
    const server = await launchServer({ args: ["--maxmemory-policy", "allkeys-lru"] });
    try {
      const { code, stdout } = await new Cli(server.url, ["doctor"]).finished;
      expect(code).toBe(69);
      expect(stdout).toMatch(/^✘ .*CONFIG SET maxmemory-policy noeviction/m);
    } finally {
      await server.stop();
    }
  });

  it("marks what may cost locks later, and that is no failure", async () => {
    const { code, stdout } = await cli("doctor");
    expect(stdout).toMatch(/^! A restart of .* may lose held locks.*CONFIG SET appendonly yes/m);
    expect(code).toBe(0);
    expect(JSON.parse((await cli("doctor", "--json")).stdout)).toMatchObject({
      ok: true,
      warnings: [expect.stringContaining("appendonly")],
    });
  });

  it("finds locks that never end", async () => {
    const server = await launchServer();
    const redis = new Redis(server.url);
    try {
      const { locks } = await parties.join({ url: server.url });
      await locks.lock("stuck").lock();
      await redis.persist("holdfast:{stuck}");
      const { code, stdout } = await new Cli(server.url, ["doctor"]).finished;
      expect(stdout).toMatch(/^✘ stuck has no end.*holdfast break/m);
      expect(code).toBe(69);
      await redis.flushall();
    } finally {
      redis.disconnect();
      await parties.close();
      await server.stop();
    }
  });

  it("still says which locks are held and waited for where something else is wrong, and nothing twice", async () => {
    const server = await launchServer();
    const redis = new Redis(server.url);
    try {
      const [{ locks }, { locks: others }] = [
        await parties.join({ url: server.url }),
        await parties.join({ url: server.url }),
      ];
      const lease = await locks.lock("held").lock();
      const next = others.lock("held").lock();
      await until(() => lease.wanted.aborted);
      await redis.call("ACL", "SETUSER", "deaf", "on", ">sesame", "~*", "&*", "+@all", "-subscribe");
      const { code, stdout } = await new Cli(server.url.replace("://", "://deaf:sesame@"), ["doctor"])
        .finished;
      expect(code).toBe(69);
      expect(stdout).toMatch(
        /^✔ 1 lock is held, the oldest .*; 1 is waited for, the longest for .* \(held\)\.$/m,
      );
      expect(stdout).toMatch(/^✔ No callers wait for each other/m);
      expect(stdout).toMatch(/^✘ Messages do not arrive/m);
      expect(stdout).not.toMatch(/^✔ Messages arrive/m);
      await lease.unlock();
      await (await next).unlock();
    } finally {
      redis.disconnect();
      await parties.close();
      await server.stop();
    }
  });

  it("names the lock that was held longest, which is no election", async () => {
    const server = await launchServer();
    try {
      const { locks } = await parties.join({ url: server.url });
      await locks.election("leader").campaign();
      await locks.lock("held").lock();
      const { stdout } = await new Cli(server.url, ["doctor"]).finished;
      expect(stdout).toMatch(/^✔ 2 locks are held, the oldest for .* \(held\); 0 are waited for\.$/m);
    } finally {
      await parties.close();
      await server.stop();
    }
  });
});

it("bash accepts the completion", async () => {
  const { stdout } = await cli("completion", "bash");
  const completed = (...words: string[]) => {
    const quoted = words.map((word) => `'${word}'`).join(" ");
    const script = `${stdout}\nCOMP_WORDS=(holdfast ${quoted}) COMP_CWORD=${words.length}; _holdfast; echo "\${COMPREPLY[@]}"`;
    return execFileSync("bash", ["-c", script], { encoding: "utf8" }).trim();
  };
  expect(completed("run", "--kill")).toBe("--kill-after");
  expect(completed("ls", "--kind", "re")).toBe("readWrite remember redisson");
  expect(completed("ls", "--sort", "=", "he")).toBe("held");
  expect(completed("run", "--on-loss", "=")).toBe("kill warn");
  expect(completed("recall", "--kind", "")).toBe("lock readWrite");
  expect(completed("run", "--on-loss=k")).toBe("--on-loss=kill"); // as in zsh
  expect(completed("completion", "f")).toBe("fish");
  expect((await cli("completion", "tcsh")).code).toBe(64);
});

const has = (shell: string) => spawnSync(shell, ["-c", "exit"]).status === 0;

it.skipIf(!has("zsh"))("zsh accepts the completion, also when nothing else is completed", async () => {
  const { stdout } = await cli("completion", "zsh");
  const script = `${stdout}\nprint -r -- $_comps[holdfast]`;
  const { stderr, ...ended } = spawnSync("zsh", ["-f", "-c", script], {
    encoding: "utf8",
    env: { ...process.env, ZDOTDIR: temporary() }, // where it keeps what it has found
  });
  expect([stderr, ended.stdout]).toEqual(["", expect.stringContaining("_holdfast")]);
});

it.skipIf(!has("fish"))("fish accepts the completion", async () => {
  const { stdout } = await cli("completion", "fish");
  const completed = (line: string) => {
    const script = `${stdout}\ncomplete -C ${JSON.stringify(line)}`;
    const { stdout: found, stderr } = spawnSync("fish", ["-N", "-c", script], { encoding: "utf8" });
    expect(stderr).toBe("");
    return lines(found).map((one) => one.split("\t")[0]);
  };
  expect(completed("holdfast ru")).toEqual(["run"]);
  expect(completed("holdfast run --kill")).toEqual(["--kill-after"]);
  expect(completed("holdfast ls --kind=re")).toEqual(["--kind=readWrite", "--kind=redisson"]);
  expect(completed("holdfast help to")).toEqual(["top"]);
  expect(completed("holdfast completion f")).toEqual(["fish"]);
  expect(completed("holdfast run x -- holdfast ru")).toEqual(["run"]);
  expect(completed("holdfast ls ")).toEqual([]);
});

it.each([
  [["nonsense"], /no command/],
  [["ask", "order:42"], /no command 'ask': it is `holdfast recall` now\./],
  [["help", "ask"], /it is `holdfast recall` now\./],
  [["ls", "a", "b"], /one pattern/],
  [["ls", "--json", "--plain"], /two formats/],
  [["inspect"], /one name/],
  [["break"], /one name/],
  [["recall", "a", "b"], /one name/],
  [["doctor", "x"], /no names/],
])("%j exits with 64", async (args, sentence) => {
  const { code, stderr } = await cli(...args);
  expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringMatching(sentence) });
});

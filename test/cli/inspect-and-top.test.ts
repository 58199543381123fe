import { afterAll, afterEach, expect, it } from "vitest";
import { lookAt } from "../../src/tools/cli/look.ts";
import { visible } from "../../src/util/visible.ts";
import { Cli, cli } from "../support/cli.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// What inspect, ls and top tell of a lock: how many processes wait, what a leader proclaims, and
// names that no shell can write.

const parties = new Parties();
afterAll(parties.close);
afterEach(() => Cli.endAll());

const run = (...args: string[]) => cli(...args).finished;

it("ls and inspect count waiting processes, not their callers: as many as have a place in the queue", async () => {
  const [plain, fair] = [freshName("plain"), freshName("fair")];
  const { locks: holder } = await parties.join();
  const { locks: busy } = await parties.join({ client: { label: "busy" } });
  const { locks: calm } = await parties.join({ client: { label: "calm" } });
  const leases = [await holder.lock(plain).lock(), await holder.lock(fair).lock()];
  const waiting = [busy, busy, busy, calm].flatMap((locks) => [
    locks.lock(plain).lock(),
    locks.fairLock(fair).lock(),
  ]);
  for (const one of waiting) one.then((lease) => lease.unlock()).catch(() => {});
  await until(async () => (await holder.lock(plain).inspect()).waiters?.length === 2);
  await until(async () => (await holder.lock(fair).inspect()).waiters?.length === 4);
  for (const name of [plain, fair]) {
    const [titles = "", line = ""] = (await run("ls", name)).stdout.split("\n");
    const at = titles.indexOf("WAITING PROCS");
    expect(line.slice(at, at + "WAITING PROCS".length).trim()).toBe("2");
  }
  expect((await run("inspect", plain)).stdout).toMatch(
    /\n {2}2 waiting processes:\n {2}1\. .*\n {2}2\. .*\n$/,
  );
  expect((await run("inspect", fair)).stdout).toMatch(
    /\n {2}2 waiting processes, with 4 callers:\n(?: {2}\d\. .*\n){4}$/,
  );
  for (const lease of leases) await lease.unlock();
  for (const one of waiting) await one;
});

it("inspect shows what the leader of an election proclaims", async () => {
  const name = freshName("election");
  const { locks } = await parties.join();
  const term = await locks.election(name).campaign({ value: "10.0.0.7:8080" });
  const over = new AbortController();
  const standby = (await parties.join()).locks.election(name).campaign({ signal: over.signal });
  standby.catch(() => {});
  // Candidates do not wait for a lock: nothing is wrong.
  const shown =
    /\n {2}value: 10\.0\.0\.7:8080\n {2}1 candidate stands by:\n {2}1\. .* has stood by for .*\n$/;
  await until(async () => shown.test((await run("inspect", name)).stdout));
  over.abort();
  expect(JSON.parse((await run("inspect", "--json", name)).stdout)).toMatchObject({
    kind: "election",
    value: "10.0.0.7:8080",
    holder: { token: term.token },
  });
  await term.proclaim("x".repeat(4_000));
  await until(async () => (await run("inspect", name)).stdout.includes(`value: ${"x".repeat(4_000)}\n`));
  await term.resign();
  const { locks: silent } = await parties.join();
  await using _ = await silent.election(name).campaign();
  const { stdout } = await run("inspect", name);
  expect(stdout).not.toContain("value");
  expect(JSON.parse((await run("inspect", "--json", name)).stdout)).toMatchObject({ value: "" });
  const lock = freshName();
  await using __ = await locks.lock(lock).lock();
  expect(JSON.parse((await run("inspect", "--json", lock)).stdout)).toMatchObject({ value: null });
});

it("inspect never shows one leader's value beside the next leader", async () => {
  const name = freshName("election");
  const { locks } = await parties.join();
  await using _ = await locks.election(name).campaign({ value: "old" });
  const { value } = { value: (await lookAt(locks, name, "election"))[0]?.value };
  expect(value).toBe("old");
  // Between the two looks the lead changes: what was answered first is of a term that has ended.
  const leader = await locks.election(name).leader();
  const stale = {
    election: () => ({ leader: async () => ({ ...leader, token: (leader?.token ?? 0) - 1 }) }),
  };
  const looked = await lookAt(
    { ...stale, list: locks.list.bind(locks) } as unknown as typeof locks,
    name,
    "election",
  );
  expect(looked).toMatchObject([{ name, value: null }]);
});

it("the command line accepts a name in its printed form", async () => {
  const own = freshName();
  const { locks } = await parties.join();
  for (const name of ["\0\x1b[2J\u202e it's ", "a\\u001bb"].map((name) => own + name)) {
    const printed = visible(name);
    const lease = await locks.lock(name).lock();
    expect(JSON.parse((await run("inspect", "--escaped", "--json", printed)).stdout)).toMatchObject({ name });
    expect((await run("recall", "--escaped", printed)).code).toBe(75);
    expect((await run("break", "--escaped", "--yes", printed)).code).toBe(0);
    expect(await locks.lock(name).isLocked()).toBe(false);
    await lease.unlock().catch(() => {});
  }
  // As it is printed, but without the flag.
  const name = `${own}a\\u001bb`;
  for (const [command, code] of [["inspect", 0] as const, ["recall", 0] as const, ["break", 75] as const]) {
    const { stdout, stderr, ...ended } = await run(command, name);
    expect([command, ended.code]).toEqual([command, code]);
    expect(stdout + stderr).toMatch(/ A name copied from a listing needs --escaped\.\n$/);
    expect((await run(command, own)).stdout).not.toContain("--escaped");
  }
  for (const args of [["inspect"], ["recall"], ["break", "--yes"]])
    expect(await run(...args, "--escaped", "a\\x1bb")).toMatchObject({
      code: 64,
      stderr: expect.stringContaining("\\\\x1b"),
    });
});

it("commands that take one name or pattern take it after --, so that it may begin with a dash", async () => {
  const name = `-${freshName()}`;
  const { locks } = await parties.join();
  const lease = await locks.lock(name).lock();
  for (const command of ["ls", "top", "inspect"])
    expect(await run(command, "--", name)).toMatchObject({ code: 0, stdout: expect.stringContaining(name) });
  expect((await run("recall", "--", name)).code).toBe(75);
  expect((await run("break", "--yes", "--", name)).code).toBe(0);
  expect(await locks.lock(name).isLocked()).toBe(false);
  await lease.unlock().catch(() => {});
  expect(await run("inspect", "a", "--", "b")).toMatchObject({ code: 64 });
});

it("top lists its keys after ?, and returns to the locks at the next key", async () => {
  const name = freshName();
  const { locks } = await parties.join();
  await using _ = await locks.lock(name).lock();
  const terminal = Cli.inTerminal(testUrl(), ["top", name]);
  const press = (keys: string) => terminal.child.stdin?.write(keys);
  await terminal.says(`> ${name}`);
  await terminal.says("? help");
  press("?");
  await terminal.says("WAITING PROCS counts");
  const before = terminal.stdout.length;
  press("b"); // it only leaves the help
  await until(() => terminal.stdout.slice(before).includes(`> ${name}`));
  expect(terminal.stdout.slice(before)).not.toContain("Type its name");
  press("/?"); // a text, and no key
  await terminal.says("/?_");
  press("\x03");
  await terminal.finished;
});

it("top shows the selected lock with its queue after Enter, and all locks after the next", async () => {
  const own = freshName();
  const [name, other] = [`${own}:a`, `${own}:b`];
  const { locks } = await parties.join();
  const { locks: waiting } = await parties.join({ client: { label: "daily" } });
  const leases = [await locks.lock(name).lock({ label: "nightly" }), await locks.lock(other).lock()];
  const next = waiting.lock(name).lock();
  await until(async () => (await locks.lock(name).inspect()).waiters?.length === 1);
  const terminal = Cli.inTerminal(testUrl(), ["top", `${own}:*`, "--sort", "name"]);
  const screen = () => terminal.stdout.slice(terminal.stdout.lastIndexOf("\x1b[H"));
  const shows = (text: string | RegExp) =>
    until(() => screen().search(text) >= 0, { what: `${text} on the screen` });
  await shows(`> ${name}`);
  await shows(`  ${other}`);
  terminal.child.stdin?.write("\r");
  await shows(/held for .* by nightly .* 1 waiting process:.* 1\. daily .* waits for/s);
  expect(screen()).not.toContain(other);
  terminal.child.stdin?.write("\r");
  await shows(`> ${name}`);
  terminal.child.stdin?.write("q");
  await terminal.finished;
  for (const lease of leases) await lease.unlock();
  await (await next).unlock();
});

it("top says in the view of a lock when its lease was renewed, and that it is not renewed any more", async () => {
  const name = freshName();
  const { locks } = await parties.join();
  const holder = cli("run", "--lease", "9s", name, "--", "sleep", "120");
  await until(async () => await locks.lock(name).isLocked());
  const terminal = Cli.inTerminal(testUrl(), ["top", name]);
  await terminal.says(`> ${name}`);
  terminal.child.stdin?.write("\r");
  const lefts = () => [...terminal.stdout.matchAll(/lease left ([\d.]+) s/g)].map(([, left]) => Number(left));
  const renewals = () => lefts().filter((left, i, all) => left > (all[i - 1] ?? left) + 1).length;
  await until(() => renewals() >= 3, { what: "three renewals on the screen" });
  await terminal.says(/its lease was renewed \d s ago, so its process lived then/);
  expect(terminal.stdout).not.toContain("not renewed");
  holder.kill("SIGSTOP");
  await terminal.says(/its lease was not renewed for [\d.]+ s/);
  holder.kill("SIGCONT");
  holder.kill("SIGTERM");
  await holder.finished;
  terminal.child.stdin?.write("q");
  await terminal.finished;
});

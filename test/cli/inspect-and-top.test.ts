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

it("waiting processes are counted, and not their callers: as many as a lock has places for", async () => {
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
  expect((await run("inspect", name)).stdout).toMatch(/\n {2}value: 10\.0\.0\.7:8080\n/);
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

it("the value of one leader is never shown beside the next one", async () => {
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

it("a name can be given as it is printed", async () => {
  const own = freshName();
  const { locks } = await parties.join();
  const names = ["\0\x1b[2J\u202e it's ", "a\\u001bb"].map((name) => own + name);
  for (const name of [`-${own}`, ...names]) {
    const printed = name.startsWith("-") ? name.replace("-", "\\u002d") : visible(name);
    const lease = await locks.lock(name).lock();
    expect(JSON.parse((await run("inspect", "--escaped", "--json", printed)).stdout)).toMatchObject({ name });
    expect((await run("recall", "--escaped", printed)).code).toBe(75);
    expect((await run("break", "--escaped", "--yes", printed)).code).toBe(0);
    expect(await locks.lock(name).isLocked()).toBe(false);
    await lease.unlock().catch(() => {});
  }
  for (const args of [["inspect"], ["recall"], ["break", "--yes"]])
    expect(await run(...args, "--escaped", "a\\x1bb")).toMatchObject({
      code: 64,
      stderr: expect.stringContaining("\\\\x1b"),
    });
});

it("top tells its keys at ?, and goes back to the locks at the next key", async () => {
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
  expect(terminal.stdout.slice(before)).not.toContain("Break?");
  press("/?"); // a text, and no key
  await terminal.says("/?_");
  press("\x03");
  await terminal.finished;
});

import { stripVTControlCharacters } from "node:util";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { circle, NOTES } from "../support/circles.ts";
import { Cli } from "../support/cli.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// ls, top, inspect and doctor report deadlocks. What takes 5 s in callers takes 200 ms here.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

const parties = new Parties();
let server: LocalServer;
let admin: Redis;
beforeAll(async () => {
  server = await launchServer();
  admin = new Redis(server.url);
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});
// Each client also warns of a deadlock, once.
const warned = (): void => {};
beforeEach(() => void process.on("warning", warned));
afterEach(() => void process.off("warning", warned));
afterEach(() => Cli.endAll());
afterEach(() => parties.close());

const cli = (...args: string[]) => new Cli(server.url, args).finished;

/** Ann holds a and waits for b, and Bob the other way round, until the deadlock is ended. */
async function deadlock() {
  await admin.flushall();
  const join = async (label: string) =>
    (await parties.join({ url: server.url, client: { deadlocks: "warn", label } })).locks;
  const [ann, bob] = [await join("ann"), await join("bob")];
  const enough = new AbortController();
  const { names, outcomes } = circle([ann, bob], enough.signal);
  const [a = "", b = ""] = names;
  await until(async () => (await admin.zcard(NOTES)) === 2);
  const end = async () => {
    enough.abort();
    await Promise.all(outcomes);
  };
  return { a, b, ann, end };
}

it("ls, top, inspect and doctor name the callers and locks of a deadlock in one line", async () => {
  const { a, b, end } = await deadlock();
  const place = String.raw`\([^()]+:${process.pid}\)`;
  const links = [`ann ${place} holds ${a} and waits for ${b}`, `bob ${place} holds ${b} and waits for ${a}`];
  const line = new RegExp(`Deadlock: (?:${links.join("; ")}|${links.toReversed().join("; ")})\\.`);
  for (const args of [["ls"], ["ls", `${a}*`], ["ls", "--json"], ["top"], ["inspect", b]]) {
    const { code, stdout, stderr } = await cli(...args);
    expect([code, stderr], args.join(" ")).toEqual([0, expect.stringMatching(line)]);
    expect(stdout, args.join(" ")).not.toContain("Deadlock");
  }
  const checked = await cli("doctor");
  expect(checked).toMatchObject({ code: 69, stdout: expect.stringMatching(`✘ ${line.source}`) });
  expect(JSON.parse((await cli("doctor", "--json")).stdout)).toMatchObject({
    ok: false,
    problems: [expect.stringMatching(line)],
  });
  await end();
});

it("a deadlock that does not concern a command's locks is not reported by it", async () => {
  const { ann, end } = await deadlock();
  const other = freshName("other");
  await using _ = await ann.lock(other).lock();
  for (const args of [
    ["ls", `${other}*`],
    ["inspect", other],
  ])
    expect(await cli(...args)).toMatchObject({ stdout: expect.stringContaining(other), stderr: "" });
  await end();
  expect((await cli("doctor")).stdout).toContain("✔ No callers wait for each other in a deadlock.");
});

it("top shows a deadlock in a line of its screen, and in the view of a lock that is part of it", async () => {
  const { a, b, end } = await deadlock();
  const top = Cli.inTerminal(server.url, ["top", "--sort", "name"]);
  await top.says(/Deadlock: (?:ann|bob) .* holds .* and waits for /);
  await top.says(`> ${[a, b].sort()[0]}`);
  top.child.stdin?.write("\r");
  await top.says("In a deadlock:");
  expect(top.stdout).toMatch(new RegExp(`ann \\(.*\\) holds ${a} and waits for ${b}`));
  await end();
  top.child.stdin?.write("q");
  await top.finished;
});

it("top shows both ends of a deadlock on a narrow terminal", async () => {
  const { a, b, end } = await deadlock();
  const top = Cli.inTerminal(server.url, ["top"], "stty cols 40");
  const shows = (text: string) =>
    until(() => stripVTControlCharacters(top.stdout).replace(/\s/g, "").includes(text), { what: text });
  await shows(`)holds${a}andwaitsfor${b}`);
  await shows(`)holds${b}andwaitsfor${a}`);
  const before = top.stdout.length;
  top.child.stdin?.write("\r");
  await until(() => top.stdout.slice(before).includes("In a deadlock:"));
  top.stdout = top.stdout.slice(before);
  await shows(`)holds${a}andwaitsfor${b}`);
  await end();
  top.child.stdin?.write("q");
  await top.finished;
});

it("ls, top, inspect and doctor say that deadlocks are not known, and why", async () => {
  await admin.flushall();
  // A key of another type stands in the place of the notes.
  await admin.set("holdfast:waits", "?");
  const { locks } = await parties.join({ url: server.url });
  const name = freshName();
  await using _ = await locks.lock(name).lock();
  for (const args of [["ls"], ["top"], ["inspect", name]])
    expect(await cli(...args)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(name),
      stderr: expect.stringMatching(/^holdfast: Deadlocks are not known: .*WRONGTYPE.*\.\n$/),
    });
  const { code, stdout } = await cli("doctor");
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\? Deadlocks are not known: /m),
  });
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { afterAll, afterEach, expect, it, onTestFinished } from "vitest";
import type { ShownNow } from "../../src/tools/ui/shown.ts";
import { Cli, programBeside } from "../support/cli.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// The page that the program serves: what it shows is tested where the page is.

const parties = new Parties();
afterAll(parties.close);
afterEach(() => Cli.endAll());

/** Starts it on a free port. */
async function start(...flags: string[]) {
  const cli = new Cli(testUrl(), ["ui", "--port", "0", "--json", ...flags]);
  await cli.says("\n");
  const { url } = JSON.parse(cli.stdout) as { url: string };
  return { cli, ...(await pageAt(url)) };
}

/** The page at an address that was printed. */
async function pageAt(address: string) {
  const { origin, searchParams } = new URL(address);
  expect(searchParams.get("word")).toMatch(/^[\w-]{22}$/);
  const opened = await fetch(address, { redirect: "manual" });
  // The word leaves the address bar, and no script reads it.
  expect([opened.status, opened.headers.get("location")]).toEqual([303, "/"]);
  const [cookie = "", ...attributes] = (opened.headers.get("set-cookie") ?? "").split("; ");
  expect(attributes).toEqual(["HttpOnly", "SameSite=Strict", "Path=/"]);
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${origin}/${path}`, { headers: { cookie, ...headers } });
  const headers = { "content-type": "application/json", "x-holdfast": "page", cookie, origin };
  const post = (body: unknown, part = "act", more: Record<string, string> = {}) =>
    fetch(`${origin}/?part=${part}`, {
      method: "POST",
      headers: { ...headers, ...more },
      body: JSON.stringify(body),
    });
  return { origin, cookie, get, post };
}

it("the page shows the locks until Ctrl-C, also while a browser is connected, and refuses actions", async () => {
  const { cli, get, post } = await start();
  const name = freshName();
  const { locks } = await parties.join({ client: { label: "nightly" } });
  await using lease = await locks.lock(name).lock();
  await using _ = await locks.lock(freshName("other")).lock();
  expect(await (await get("")).text()).toContain("<!doctype html>");
  const state = await get(`?part=state&search=${encodeURIComponent(name)}`);
  expect(await state.json()).toMatchObject({ locks: [{ name, holder: { label: "nightly" } }] });
  const wanted = { action: "break", kind: "lock", name, holder: "x", mode: null };
  expect((await post(wanted)).status).toBe(403);
  expect((await get("?part=state", { "x-forwarded-for": "127.0.0.1" })).status).toBe(403);
  const looking = await get("?part=events");
  expect(looking.headers.get("content-type")).toContain("text/event-stream");
  cli.kill("SIGINT");
  expect(await cli.finished).toMatchObject({ code: 130, stderr: "" });
  await looking.text().catch(() => {});
  expect(lease.held).toBe(true);
});

it("the page shows nothing to a browser that has not opened its address, and refuses its actions", async () => {
  const { origin } = await start("--actions");
  const other = await start("--actions");
  const headers = { "content-type": "application/json", "x-holdfast": "page", origin };
  const init = { method: "POST", headers, body: "{}" };
  for (const path of ["", "?part=state", "?part=events", "?part=page.js", "?word=", "?word=x"])
    expect([path, (await fetch(`${origin}/${path}`)).status]).toEqual([path, 403]);
  expect((await fetch(`${origin}/?part=act`, init)).status).toBe(403);
  // The word of another page of this machine is none of this one's.
  const [, theirs = ""] = /holdfast-\d+=(\S+)/.exec(other.cookie) ?? [];
  const { port } = new URL(origin);
  const answer = await fetch(`${origin}/?part=state`, { headers: { cookie: `holdfast-${port}=${theirs}` } });
  expect(answer.status).toBe(403);
});

it("--actions lets a viewer force-release the hold that it was shown", async () => {
  const { post } = await start("--actions");
  const name = freshName();
  const { locks } = await parties.join({ client: { linger: 1_000 } });
  const lease = await locks.lock(name).lock();
  const holder = (await locks.lock(name).inspect()).holder?.id;
  const wanted = { action: "break", kind: "lock", name, holder, mode: null };
  expect(await (await post({ ...wanted, holder: `${holder}0` })).json()).toMatchObject({ done: false });
  expect(await (await post(wanted)).json()).toMatchObject({ done: true });
  await until(() => lease.signal.aborted);
  expect(lease.signal.reason).toMatchObject({ reason: "revoked", by: expect.stringMatching(/.@./) });
  await lease.unlock().catch(() => {});
});

it("the page ends with the process that started it", async () => {
  const shell = new Cli(testUrl(), ["ui", "--port", "0"], {}, (line) => [
    "sh",
    "-c",
    '"$@" & wait',
    "sh",
    ...line,
  ]);
  await shell.says("The locks are shown at");
  shell.kill("SIGKILL");
  // stdout closes when the last process that has it ends.
  const { stderr } = await shell.finished;
  expect(stderr).toBe("holdfast: The process that started the page has ended, so the page ends too.\n");
});

it("the program reports a bad address", async () => {
  const other = createServer();
  await new Promise<void>((listening) => other.listen(0, "127.0.0.1", listening));
  const { port } = other.address() as AddressInfo;
  const ui = (...flags: string[]) => new Cli(testUrl(), ["ui", ...flags]).finished;
  try {
    expect(await ui("--port", String(port))).toMatchObject({
      code: 69,
      stderr: expect.stringMatching(/in use/),
    });
    expect(await ui("--host", "0.0.0.0")).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/authorize/),
    });
    expect(await ui("order:42")).toMatchObject({ code: 64, stderr: expect.stringMatching(/no names/) });
  } finally {
    other.close();
  }
});

it("--demo needs no Redis and no library of one, serves a fleet that works, and ends on SIGTERM", async () => {
  const env = { HOLDFAST_REDIS: "redis://127.0.0.1:1", HOLDFAST_CLUSTER: "1", HOLDFAST_SENTINEL: "none" };
  const child = spawn(process.execPath, [programBeside(), "ui", "--demo", "--port", "0", "--json"], {
    env: { ...process.env, ...env, REDIS_URL: "redis://127.0.0.1:1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].on("data", (text) => {
      printed[name] += text;
    });
  await until(() => printed.stdout.includes("\n"));
  const { get, post } = await pageAt((JSON.parse(printed.stdout) as { url: string }).url);
  const seen = async () => (await (await get("?part=state&view=now")).json()) as ShownNow;
  const kinds = new Set<string>();
  await until(async () => {
    const { locks, trouble } = await seen();
    expect(trouble).toBeNull();
    for (const { kind } of locks) kinds.add(kind);
    return kinds.size === 5;
  });
  const { demo, locks } = await seen();
  expect(demo?.fleet.map(({ name }) => name)).toContain("web-1");
  expect(locks.every(({ holder }) => holder === null || holder.host !== hostname())).toBe(true);
  // A knob has the protection of an action.
  const wanted = { knob: "latency", ms: 500 };
  expect((await post(wanted, "knob", { "x-holdfast": "" })).status).toBe(403);
  expect((await post(wanted, "knob", { cookie: "" })).status).toBe(403);
  expect((await post({ knob: "latency", ms: 7 }, "knob")).status).toBe(400);
  expect(await (await post(wanted, "knob")).json()).toMatchObject({ done: true, demo: { lateBy: 500 } });
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect([await ended, printed.stderr]).toEqual([[143, null], ""]);
});

it.each(["--redis=localhost", "--cluster", "--sentinel=mymaster", "--prefix=app:"])(
  "--demo refuses %s, which is about a Redis",
  async (flag) => {
    const { code, stderr } = await new Cli(testUrl(), ["ui", "--demo", flag]).finished;
    expect([code, stderr]).toEqual([64, expect.stringContaining(`leave out ${flag.replace(/=.*/, "")}.`)]);
  },
);

it("a page that is no demo has no knobs", async () => {
  const { get, post } = await start("--actions");
  expect(await (await get("?part=state")).json()).toMatchObject({ demo: null });
  expect((await post({ knob: "latency", ms: 0 }, "knob")).status).toBe(404);
});

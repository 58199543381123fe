import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, expect, it } from "vitest";
import { Cli } from "../support/cli.ts";
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
  const headers = {
    "content-type": "application/json",
    "x-holdfast": "page",
    "sec-fetch-site": "same-origin",
  };
  const post = (body: unknown) =>
    fetch(`${url}?part=act`, { method: "POST", headers, body: JSON.stringify(body) });
  return { cli, url, post };
}

it("shows the locks until Ctrl-C, while a browser looks too, and lets nobody act", async () => {
  const { cli, url, post } = await start();
  const name = freshName();
  const { locks } = await parties.join({ client: { label: "nightly" } });
  await using lease = await locks.lock(name).lock();
  expect(await (await fetch(url)).text()).toContain("<!doctype html>");
  const state = await fetch(`${url}?part=state&search=${encodeURIComponent(name)}`);
  expect(await state.json()).toMatchObject({ locks: [{ name, holder: { label: "nightly" } }] });
  const wanted = { action: "break", kind: "lock", name, token: lease.token, mode: null };
  expect((await post(wanted)).status).toBe(403);
  expect((await fetch(`${url}?part=state`, { headers: { "x-forwarded-for": "127.0.0.1" } })).status).toBe(
    403,
  );
  const looking = await fetch(`${url}?part=events`);
  expect(looking.headers.get("content-type")).toContain("text/event-stream");
  cli.kill("SIGINT");
  expect(await cli.finished).toMatchObject({ code: 130, stderr: "" });
  await looking.text().catch(() => {});
  expect(lease.held).toBe(true);
});

it("--actions lets a viewer break the hold that was seen", async () => {
  const { post } = await start("--actions");
  const name = freshName();
  const { locks } = await parties.join({ client: { linger: 1_000 } });
  const lease = await locks.lock(name).lock();
  const wanted = { action: "break", kind: "lock", name, token: lease.token, mode: null };
  expect(await (await post({ ...wanted, token: lease.token - 1 })).json()).toMatchObject({ done: false });
  expect(await (await post(wanted)).json()).toMatchObject({ done: true });
  await until(() => lease.signal.aborted);
  expect(lease.signal.reason).toMatchObject({ reason: "revoked", by: expect.stringMatching(/.@./) });
  await lease.unlock().catch(() => {});
});

it("says what is wrong with its address", async () => {
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

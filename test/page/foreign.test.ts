import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { createLockUI } from "../../src/tools/ui/index.ts";
import { createOwnUI } from "../../src/tools/ui/own-ui.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";
import { Chromium } from "./browser.ts";

// What a real browser does for another site, at the page's own door. What each request of it looks
// like is in test/ui/admission.test.ts.

const own = new OwnServer();
const browser = new Chromium();

async function listen(handler: RequestListener): Promise<number> {
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A client on the Redis of this file, and a lock that it holds. */
async function stage() {
  await own.admin.flushall();
  const { redis } = await own.parties.join({ url: own.url });
  const locks = createLockClient(redis);
  onTestFinished(() => locks.close({ grace: 0 }));
  return { redis, locks, lease: await locks.lock("order:42").lock({ lease: 600_000 }) };
}

/** All that a site can try without asking, and what it would learn by it, as the text of its own page. */
const attack = (target: string, holder: string): string => `<!doctype html><title>evil</title>
<iframe name="sink"></iframe><iframe id="framed" src="${target}"></iframe>
<form id="form" method="post" enctype="text/plain" target="sink" action="${target}?part=act"><input name="x"></form>
<p id="said"></p>
<script>
const wanted = ${JSON.stringify(JSON.stringify({ action: "break", kind: "lock", name: "order:42", holder, mode: null }))};
const learned = [];
const tries = [
  fetch("${target}?part=state", { mode: "no-cors" }).then((one) => one.text()),
  fetch("${target}?part=state").then((one) => one.text()),
  fetch("${target}?part=act", { method: "POST", mode: "no-cors", body: wanted }).then((one) => one.text()),
  fetch("${target}?part=act", { method: "POST", body: wanted,
    headers: { "content-type": "application/json", "x-holdfast": "page" } }).then((one) => one.text()),
  new Promise((done) => {
    const source = new EventSource("${target}?part=events");
    source.onmessage = ({ data }) => done(data);
    source.onerror = () => { source.close(); done(""); };
  }),
  new Promise((done) => {
    const socket = new WebSocket("${target.replace("http", "ws")}?part=events");
    socket.onmessage = ({ data }) => done(data);
    socket.onopen = () => done("open");
    socket.onerror = () => done("");
  }),
  new Promise((done) => { document.getElementById("framed").onload = () => setTimeout(done, 0, ""); }),
].map((one) => one.then((text) => learned.push(text), () => learned.push("")));
document.getElementById("form").submit();
Promise.all(tries).then(() => { document.getElementById("said").textContent = "learned: " + learned.join(""); });
</script>`;

it("another site learns nothing and does nothing, though authorize lets everybody in", async () => {
  const { redis, locks, lease } = await stage();
  const holder = (await locks.lock("order:42").inspect()).holder?.id ?? "";
  const ui = createLockUI({ locks, redis, authorize: () => true, actions: ["recall", "break"] });
  onTestFinished(() => ui.close());
  let answered: string[] = [];
  const port = await listen((request, response) => {
    response.once("close", () => answered.push(`${request.method} ${request.url} ${response.statusCode}`));
    void ui.node(request, response);
  });
  const attempt = async (target: string): Promise<string[]> => {
    answered = [];
    browser.expect(/./);
    const evil = await listen((_, response) => {
      response.setHeader("content-type", "text/html");
      response.end(attack(target, holder));
    });
    const page = await browser.open(`http://evil.example:${evil}/`);
    await page.getByText(/^learned:/).waitFor();
    expect(await page.locator("#said").innerText()).toBe("learned:");
    // The form's own request is none that its page hears of.
    await until(() => answered.filter((one) => one.startsWith("POST")).length >= 2);
    await page.close();
    expect(answered.some((one) => one.includes("part=events"))).toBe(true);
    return answered.filter((one) => !/ (403|405)$/.test(one)).sort();
  };
  expect(await attempt(`http://127.0.0.1:${port}/locks`)).toEqual([]);
  // Without TLS, at another name, Chromium does not say which site asks: what it is answered it
  // gives to nobody.
  expect(await attempt(`http://page.example:${port}/locks`)).toEqual([
    "GET /locks 200",
    "GET /locks?part=state 200",
  ]);
  expect(await locks.lock("order:42").inspect()).toMatchObject({ token: lease.token });
  // A link to it is none of that.
  const page = await browser.open(`http://127.0.0.1:${port}/locks`);
  await page.getByRole("link", { name: "order:42" }).waitFor();
  await page.goto(`http://127.0.0.1:${port}/locks#/lock/lock/order%3A42`);
  await page.getByRole("button", { name: "Force-release …" }).waitFor();
});

it("a name that leads to this machine from elsewhere shows nothing", async () => {
  const { redis, locks } = await stage();
  const ui = createLockUI({ locks, redis });
  onTestFinished(() => ui.close());
  const port = await listen(ui.node);
  browser.expect(/403|Cross-Origin-Opener-Policy header has been ignored/);
  const rebound = await browser.open(`http://rebound.example:${port}/`);
  expect(await rebound.innerText("body")).toMatch(/open to browsers of its own machine alone/);
  const page = await browser.open(`http://localhost:${port}/`);
  await page.getByRole("link", { name: "order:42" }).waitFor();
});

it("the word of one's own page leaves the address bar, no script reads it, and no link of another site brings it along", async () => {
  const { redis, locks } = await stage();
  const ui = createOwnUI({ locks, redis, actions: ["break"] }, { word: "open-sesame", label: "me" });
  onTestFinished(() => ui.close());
  const port = await listen(ui.node);
  browser.expect(/403|Failed to load|a request/);
  const url = `http://localhost:${port}/`;
  const page = await browser.open(`${url}?word=open-sesame#/lock/lock/order%3A42`);
  await page.getByRole("button", { name: "Force-release …" }).waitFor();
  expect(page.url()).toBe(`${url}#/lock/lock/order%3A42`);
  expect(await page.evaluate(() => document.cookie)).toBe("");
  await page.reload();
  await page.getByRole("button", { name: "Force-release …" }).click();
  await page.getByLabel("Name of the lock").fill("order:42");
  await page.getByRole("button", { name: "Force-release", exact: true }).click();
  await until(async () => !(await locks.lock("order:42").isLocked()));

  const evil = await listen((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<a href="${url}">free prizes</a>`);
  });
  await page.goto(`http://evil.example:${evil}/`);
  await page.getByText("free prizes").click();
  await page.getByText("This page is open to the one who started it").waitFor();
  const stranger = await browser.open(url);
  expect(await stranger.innerText("body")).toMatch(/open to the one who started it/);
});

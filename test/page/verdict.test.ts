import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { Chromium, fitsWidth } from "./browser.ts";
import { type Scene, setScene, tellWaits } from "./scene.ts";

// The line on top that answers "is something wrong?", and the age of what is shown.

const own = new OwnServer();
const browser = new Chromium();
const [S, MIN] = [1_000, 60_000];
/** A busy machine lets a browser wait. */
const PATIENT = { timeout: 30_000 };

async function serve(options: Parameters<typeof servePage>[1] = {}) {
  await own.admin.flushall();
  const { redis } = await own.parties.join({ url: own.url });
  const served = await servePage(redis, options);
  onTestFinished(() => served.stop());
  return served;
}

/** Its level, and its text in one line. */
const line = async (page: Page): Promise<string> => {
  const level = await page.locator("#verdict").getAttribute("data-level");
  return `${level} ${(await page.locator("#verdict").innerText()).replaceAll(/\s+/g, " ").trim()}`;
};
const reads = (page: Page, words: RegExp) => expect.poll(() => line(page), PATIENT).toMatch(words);

const held = (name: string, ms: number, waited: number | null = null, label?: string): Scene => ({
  name,
  by: [`host-${name}`, 1],
  held: ms,
  left: 10 * MIN,
  ...(waited !== null && { waiters: [["web-2", 2, waited]] as const }),
  ...(label !== undefined && { label }),
});

it("says that all is well; then the longest wait, the old holder and the deadlock, the most important one first", async () => {
  const { url } = await serve();
  const page = await browser.open(`${url}/`);
  await reads(page, /^fine All is well\. No process is waiting\.$/);
  await setScene(own.admin, [held("a", 2 * S, 500)]);
  await reads(page, /^fine All is well\. The longest wait is \d+(\.\d)? (m?s)\.$/);
  await setScene(own.admin, [held("b", 30 * S, 20 * S, "nightly <b>invoices</b>")]);
  await reads(page, /^long Long wait: b for 2\d s, held by nightly <b>invoices<\/b> for 3\d s\.$/);
  expect(await page.locator("#headline").getAttribute("role")).toBe("status");
  // Usual are the ages of some holds.
  await setScene(own.admin, [...["c", "d", "e"].map((name) => held(name, 3 * S)), held("old", 14 * MIN)]);
  await reads(page, /^long Long wait: b .* Old holder: old held by host-old:1 for 14 min \(usual: .*s\)\.$/);
  // The focus stays in the line while its times go on, and where it is built anew.
  await page.locator("#verdict a").last().focus();
  const before = await line(page);
  await expect.poll(() => line(page), PATIENT).not.toBe(before);
  await setScene(own.admin, [held("f", 20 * S, 12 * S)]);
  await reads(page, /, and \d more\. Old holder: old/);
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("old");
  await setScene(own.admin, [held("b", 90 * S, 80 * S)]);
  await reads(page, /^bad Long wait: b for 1 min/);
  const pair = ["one", "two"].map((name, i, both) => {
    const waiters = [[`host-${both[1 - i]}`, 1, 7 * S]] as const;
    return { ...held(name, 9 * S), waiters };
  });
  await setScene(own.admin, pair);
  await expect
    .poll(
      async () => {
        await tellWaits(own.admin, ["one", "two"], 7 * S);
        return line(page);
      },
      { ...PATIENT, interval: 2_500 },
    )
    .toMatch(/^bad Deadlock: callers wait for each other over one and two\. Long wait: b .* Old holder: old/);
  await page.getByRole("link", { name: "callers wait for each other" }).click();
  await page.getByRole("heading", { name: "Deadlock: 2 callers wait for each other" }).waitFor();
  // It stands above every view.
  await reads(page, /^bad Deadlock/);
  // It tells of all locks, whatever is searched for.
  await page.goto(`${url}/#/now?search=no-such-*`);
  await page.getByText("No lock fits.").waitFor();
  await tellWaits(own.admin, ["one", "two"], 7 * S);
  await reads(page, /^bad Deadlock: callers wait for each other over one and two\. Long wait: b /);
});

it("each lock is told once, by its worst trouble, and others are counted", async () => {
  const { url } = await serve();
  await setScene(own.admin, [
    ...["c", "d", "e", "f", "g", "h"].map((name) => held(name, 3 * S)),
    held("both", 20 * MIN, 40 * S),
    held("waited", 30 * S, 20 * S),
    ...["old", "older"].map((name, i) => held(name, (14 + i) * MIN)),
  ]);
  const page = await browser.open(`${url}/`);
  await reads(
    page,
    /^long Long wait: both for 4\d s, held by host-both:1 for 20 min, and 1 more\. Old holder: older held by host-older:1 for 15 min \(usual: .*\), and 1 more\.$/,
  );
});

it("it says that deadlocks are not known where their notes cannot be read, and is not green", async () => {
  const { url } = await serve();
  // A key of another type stands in the place of the notes.
  await own.admin.set("holdfast:waits", "?");
  const page = await browser.open(`${url}/#/blocked`);
  await reads(page, /^ ?Nothing wrong found\. Deadlocks are not known\.$/);
  await page.getByText(/The notes of waiting callers could not be read: .*WRONGTYPE/).waitFor();
  await own.admin.del("holdfast:waits");
  await reads(page, /^fine All is well\. No process is waiting\.$/);
});

it("it reports a restart, with the locks that are gone or that none are", async () => {
  const { url } = await serve();
  await setScene(own.admin, [held("a", 2 * S), held("b", 2 * S)]);
  const page = await browser.open(`${url}/`);
  await page.getByText(/^2 locks · /).waitFor();
  await own.admin.save();
  await own.server.restart();
  await reads(
    page,
    /^fine All is well\. No process is waiting\. Redis restarted or failed over .* ago, and the locks held before are still held\.$/,
  );
  await rm(join(own.server.dir, "dump.rdb"));
  await own.server.restart();
  // As if another caller had taken it at once.
  await setScene(own.admin, [held("a", 100)]);
  await reads(
    page,
    /^long Locks gone: Redis restarted or failed over .* ago, and 2 of 2 locks held before are gone\.$/,
  );
});

it("it says that Redis is full, and before that nearly full", async () => {
  const { url } = await serve();
  const limit = (bytes: number) => own.admin.config("SET", "maxmemory", Math.round(bytes));
  onTestFinished(async () => void (await limit(0)));
  const page = await browser.open(`${url}/`);
  await reads(page, /^fine All is well/);
  const used = Number(/used_memory:(\d+)/.exec(await own.admin.info("memory"))?.[1]);
  await limit(used / 0.95);
  await reads(
    page,
    /^long Redis is nearly full: 9\d % of maxmemory is in use, and at 100 % new calls cannot take locks\.$/,
  );
  await limit(1);
  await reads(
    page,
    /^bad Redis is full: its memory has reached maxmemory, so new calls cannot take locks\.$/,
  );
  // Keys are evicted: it takes locks, and `holdfast doctor` warns.
  await own.admin.config("SET", "maxmemory-policy", "volatile-lru");
  onTestFinished(async () => void (await own.admin.config("SET", "maxmemory-policy", "noeviction")));
  await reads(page, /^fine All is well/);
});

it("390 px wide it wraps, and covers nothing", async () => {
  const { url } = await serve();
  await setScene(own.admin, [
    ...["c", "d", "e", "f", "g"].map((name) => held(name, 3 * S)),
    held(`waited:${"x".repeat(200)}`, 30 * S, 20 * S, "nightly invoices of all customers"),
    held(`old:${"y".repeat(200)}`, 14 * MIN),
  ]);
  const page = await browser.open(`${url}/`, { viewport: { width: 390, height: 844 } });
  await reads(page, /^long Long wait: waited.* Old holder: old/);
  expect(await fitsWidth(page)).toBe(true);
  const boxOf = async (place: string) => {
    const box = await page.locator(place).boundingBox();
    if (!box) throw new Error(`${place} is not shown`);
    return box;
  };
  const [line, view] = [await boxOf("#verdict"), await boxOf("#view")];
  expect(line.height).toBeGreaterThan(60);
  expect(line.x + line.width).toBeLessThanOrEqual(390);
  expect(line.y + line.height).toBeLessThanOrEqual(view.y);
  // No text of it is cut off but long names, which end in an ellipsis.
  const hidden = await page
    .locator("#verdict, #verdict :not(.name, bdi)")
    .evaluateAll(
      (all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0).length,
    );
  expect(hidden).toBe(0);
});

it("it is never green while the data is stale", async () => {
  const { url } = await serve();
  const { host } = new URL(url);
  const page = await browser.open("about:blank");
  browser.expect(/a request|Failed to load|ERR_|EventSource/);
  // One answer, and nothing newer: what the server calls due is far away.
  await page.route("**/*part=events*", (route) => route.fulfill({ status: 404, body: "" }));
  let answers = 0;
  await page.route("**/*part=state*", async (route) => {
    if (answers++ > 0) return;
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), due: 60_000 } });
  });
  await page.goto(`http://${host}/`);
  await reads(page, /^fine All is well/);
  await reads(page, /^ ?(null )?Nothing was wrong at the last update\.$/);
  expect(await page.locator("#said").innerText()).toMatch(/stale, updated \d+ s ago/);
});

it("the age of the data is shown all the time; once its process has gone, the page says that what it shows is old", async () => {
  const { url, stop } = await serve();
  await setScene(own.admin, [held("order:42", 5 * S, 20 * S)]);
  const page = await browser.open(`${url}/`);
  const said = page.locator("#said");
  await page.getByText(/^1 lock · updated \d s ago$/).waitFor();
  const ages = new Set<string>();
  await expect.poll(async () => ages.add(await said.innerText()).size, PATIENT).toBeGreaterThan(1);
  expect([...ages].every((text) => /^1 lock · updated \d s ago$/.test(text))).toBe(true);
  browser.expect(/Failed to load resource|ERR_/);
  await stop();
  const gone = "The server of this page does not answer. What you see is the last answer.";
  await page.getByRole("alert").getByText(gone).waitFor(PATIENT);
  await reads(page, /^bad No new data\./);
  await expect.poll(() => said.innerText(), PATIENT).toMatch(/^No answer for \d+ s$/);
  expect(await page.locator("#facts").isVisible()).toBe(false);
});

it("what answers in place of the page's server is not shown as it is", async () => {
  const { url } = await serve();
  const { port } = new URL(url);
  let isOpen = true;
  const proxy = createServer(async (request, response) => {
    const isPart = /part=(events|state)/.test(request.url ?? "");
    if (isPart && (!isOpen || request.url?.includes("events"))) {
      response.writeHead(isOpen ? 404 : 502, { "content-type": "text/html" });
      response.end("<html><h1>502 Bad Gateway</h1></html>");
      return;
    }
    const answer = await fetch(`http://127.0.0.1:${port}${request.url}`);
    response.setHeader("content-type", answer.headers.get("content-type") ?? "");
    response.end(await answer.text());
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => void proxy.close());
  browser.expect(/Failed to load resource|EventSource/);
  const page = await browser.open(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}/`);
  await reads(page, /^fine All is well/);
  isOpen = false;
  await reads(
    page,
    /^bad No new data\. Something else answered .* with status 502\. .* What you see is the last answer\.$/,
  );
  expect(await page.getByText("<h1>").count()).toBe(0);
});

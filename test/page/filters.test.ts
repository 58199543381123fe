import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { Chromium } from "./browser.ts";
import { type Scene, setScene } from "./scene.ts";

const own = new OwnServer();
const browser = new Chromium();
/** A busy machine lets a browser wait. */
const PATIENT = { timeout: 30_000 };
const MIN = 60_000;

const scene = (name: string, ...waits: number[]): Scene => ({
  ...{ name, by: ["web-1", 1], held: 2 * MIN, left: 30 * MIN },
  waiters: waits.map((ago, i) => [`web-${i + 2}`, 1, ago] as const),
});

async function serve(...scenes: Scene[]): Promise<string> {
  await own.admin.flushall();
  await setScene(own.admin, scenes);
  const { redis } = await own.parties.join({ url: own.url });
  const served = await servePage(redis);
  onTestFinished(() => served.stop());
  return served.url;
}

const names = (page: Page): Promise<string[]> => page.locator("tbody a.name").allInnerTexts();
const counts = async (page: Page): Promise<string[]> =>
  (await page.locator(".filter:visible").allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " "));

it("how many locks are held, waited for, and waited for since long: each number is a filter", async () => {
  const url = await serve(scene("a"), scene("b", 0), scene("c", 2 * MIN), scene("d", 3 * MIN, 0));
  // Free, with a waiter that has not taken it yet.
  await own.admin.zadd(
    "holdfast:{e}:queue",
    Date.now() * 1_000,
    "1 3000 0 holdfast:client:x:1:0123456789abcdef:00000001",
  );
  const page = await browser.open(url);
  await expect.poll(() => counts(page), PATIENT).toEqual(["Held 4", "Waited for 4", "Long 2"]);
  const press = async (name: RegExp) => {
    await page.getByRole("button", { name }).focus();
    await page.keyboard.press("Space");
  };
  await press(/^Long 2$/);
  await expect.poll(async () => (await names(page)).sort(), PATIENT).toEqual(["c", "d"]);
  await page.getByText("2 of 5 locks").waitFor();
  await press(/^Held 4$/);
  await expect.poll(async () => (await names(page)).sort(), PATIENT).toEqual(["a", "b", "c", "d"]);
  expect(await page.locator(".filter[aria-pressed=true]").allInnerTexts()).toHaveLength(1);
  await press(/^Held 4$/);
  await expect.poll(async () => (await names(page)).length, PATIENT).toBe(5);
});

it("a filter that would leave nothing is not offered, and stays while it is on", async () => {
  const url = await serve(scene("a"), scene("c", 2 * MIN));
  const page = await browser.open(`${url}/#/now?only=long`);
  await expect.poll(() => names(page), PATIENT).toEqual(["c"]);
  await own.admin.del("holdfast:{c}:queue");
  await page.getByText("No process has waited for long.").waitFor();
  expect(await counts(page)).toEqual(["Held 2", "Long 0"]);
  await page.getByRole("button", { name: "Long 0" }).click();
  await expect.poll(() => counts(page), PATIENT).toEqual(["Held 2"]);
});

it("how Redis answers is above each view: the time of an answer, and its memory", async () => {
  const url = await serve(scene("a"));
  const page = await browser.open(`${url}/#/blocked`);
  await page.getByText(/ · Redis \d+(\.\d)? m?s · \d+(\.\d)? MB$/).waitFor();
  await own.admin.config("SET", "maxmemory", "200mb");
  onTestFinished(async () => void (await own.admin.config("SET", "maxmemory", "0")));
  await page.getByText(/ · Redis \d+(\.\d)? m?s · \d+(\.\d)? MB of 210 MB$/).waitFor();
});

it("a Redis that is slow is said to be", async () => {
  const url = await serve(scene("a"));
  const page = await browser.open("about:blank");
  // The window comes from nowhere, and what is routed is refused on purpose.
  browser.expect(/a request|EventSource|ERR_|Failed/);
  await page.route(/part=(events|state)/, async (route) => {
    if (route.request().url().includes("part=events")) return route.fulfill({ status: 404 });
    const seen = await (await route.fetch()).json();
    return route.fulfill({ json: { ...seen, server: { ...seen.server, roundTrip: 1_234 } } });
  });
  await page.goto(url);
  await page.locator("#verdict[data-level=long]").waitFor();
  expect(await page.locator("#verdict").innerText()).toBe(
    "Redis is slow: it answered after 1.2 s, and each lock takes at least as long.",
  );
  expect(await page.locator("#server").innerText()).toMatch(/Redis 1\.2 s/);
});

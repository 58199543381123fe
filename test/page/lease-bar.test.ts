import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { Chromium } from "./browser.ts";
import { setScene } from "./scene.ts";

const own = new OwnServer();
const browser = new Chromium();
const [S, MIN] = [1_000, 60_000];

/** The bar of a lock: how full, and in which colour; null: there is none. */
async function bar(page: Page, name: string) {
  const lease = page.locator("tr", { has: page.getByRole("link", { name, exact: true }) }).locator(".lease");
  await lease.waitFor();
  if (!(await lease.locator(".bar").isVisible())) return null;
  const width = await lease
    .locator(".fill")
    .evaluate((fill) => Number.parseInt((fill as HTMLElement).style.width, 10));
  return { width, state: await lease.getAttribute("data-state") };
}

it("the bar of a lease is a part of its length, however long that is; without a length there is none", async () => {
  await own.admin.flushall();
  await setScene(own.admin, [
    { name: "six-minutes", by: ["a", 1], held: 14 * S, left: 6 * MIN - 14 * S },
    { name: "an-hour", by: ["a", 1], held: 2 * MIN, left: 58 * MIN },
    { name: "ten-seconds", by: ["a", 1], held: 500, left: 9.5 * S },
    // Renewed, or of 14 minutes and nearly over: nobody knows.
    { name: "renewed", by: ["a", 1], held: 14 * MIN, left: 23 * S },
  ]);
  const { redis, locks } = await own.parties.join({ url: own.url, client: { leaseTime: 30_000 } });
  const served = await servePage(redis);
  onTestFinished(() => served.stop());
  const page = await browser.open(served.url);
  const six = await bar(page, "six-minutes");
  expect(six?.state).toBe("fine");
  expect(six?.width).toBeGreaterThan(80);
  expect((await bar(page, "an-hour"))?.width).toBeGreaterThan(85);
  const places = await page
    .locator("tbody .lease")
    .evaluateAll((all) =>
      all.flatMap((one) => [...one.children].map((part) => Math.round(part.getBoundingClientRect().x))),
    );
  const ends = await page
    .locator("tbody .lease .left")
    .evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().right)));
  // None covers the time beside it.
  for (const [i, end] of ends.entries()) expect(places[2 * i + 1] || end).toBeGreaterThanOrEqual(end);
  expect(await bar(page, "renewed")).toBeNull();
  // A renewal tells it: from 23 s to 30 s between two looks.
  await own.admin.pexpire("holdfast:{renewed}", 30 * S);
  await expect.poll(() => bar(page, "renewed"), { timeout: 30_000 }).not.toBeNull();
  expect((await bar(page, "renewed"))?.width).toBeGreaterThan(50);
  // It runs out, and says so.
  await page.locator(".lease[data-state=ending]").first().waitFor();
  await using _ = await locks.lock("own").lock();
  await page.getByRole("link", { name: "own" }).waitFor();
  expect((await bar(page, "own"))?.width).toBeGreaterThan(60);
});

it("the card of a holder says that its lease is not renewed any more, once that is certain", async () => {
  await own.admin.flushall();
  await setScene(own.admin, [{ name: "report", by: ["a", 1], held: 14 * MIN, left: 21 * S }]);
  const { redis } = await own.parties.join({ url: own.url });
  const served = await servePage(redis);
  onTestFinished(() => served.stop());
  const page = await browser.open(`${served.url}#/lock/lock/report`);
  const left = page.locator(".card .left");
  const seconds = async () => Number.parseInt((await left.textContent()) ?? "", 10);
  const late = page.getByText("Its lease was not renewed for");
  await left.waitFor();
  // Two renewals to 58 s, each as the page sees it. Only large steps: the page looks every 2 s, or
  // later on a busy machine.
  for (let i = 0; i < 2; i++) {
    await own.admin.pexpire("holdfast:{report}", 21 * S);
    await expect.poll(seconds, { timeout: 20_000 }).toBeLessThan(22);
    await own.admin.pexpire("holdfast:{report}", 58 * S);
    await expect.poll(seconds, { timeout: 20_000 }).toBeGreaterThan(22);
  }
  // Of one moment: where the machine has stood still since, less than half may be left by now.
  const { rest, isShown } = await page.locator(".card").evaluate((card) => ({
    rest: card.querySelector(".left")?.textContent,
    isShown: card.querySelector<HTMLElement>(".late")?.hidden === false,
  }));
  expect(isShown && Number.parseInt(rest ?? "", 10) > 29).toBe(false);
  await own.admin.pexpire("holdfast:{report}", 25 * S);
  await late.waitFor();
  expect(await page.locator(".late").textContent()).toMatch(/for (2[5-9]|[345]\d) s: its process may hang/);
});

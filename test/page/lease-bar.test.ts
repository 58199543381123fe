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

import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { FakeKeeper } from "../support/fake-keeper.ts";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { Chromium } from "./browser.ts";

const own = new OwnServer();
const browser = new Chromium();
/** A busy machine lets a browser wait. */
const PATIENT = { timeout: 30_000 };

const button = (page: Page) => page.getByRole("button", { name: "Ask the holder to release" });

it("an unused lock can be recalled, and the button is there only while a holder keeps it unused", async () => {
  await own.admin.flushall();
  const { redis, locks } = await own.parties.join({ url: own.url });
  const served = await servePage(redis, { actions: ["recall"] });
  onTestFinished(() => served.stop());
  const lease = await locks.lock("used").lock();
  const keeper = await FakeKeeper.start(own.url, "idle");
  await keeper.keep("unused");
  const page = await browser.open(`${served.url}/#/lock/lock/used`);
  await page.locator(".card").waitFor();
  expect(await button(page).isVisible()).toBe(false);
  // Nothing else can be done there, so nothing is left of its line.
  expect(await page.locator(".card .actions").isVisible()).toBe(false);

  await page.goto(`${served.url}/#/lock/lock/unused`);
  await button(page).waitFor();
  // Somebody takes it there: it is in use.
  await keeper.keep("unused", 1);
  await expect.poll(() => button(page).isVisible(), PATIENT).toBe(false);
  await keeper.keep("unused");
  await button(page).click();
  await page.getByText("Its holder did not use it, and has released it.").waitFor();
  expect(await locks.lock("unused").inspect()).toMatchObject({ holder: null });
  await lease.unlock();
});

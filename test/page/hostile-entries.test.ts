import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { STREAM } from "../../src/tools/ui/observed.ts";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { toldCall } from "../support/told-call.ts";
import { Chromium } from "./browser.ts";

/** A busy machine lets a browser wait. */
const PATIENT = { timeout: 30_000 };

// One entry of the observed stream, by a program that has no right but that of being observed.

const own = new OwnServer();
const browser = new Chromium();

const row = (page: Page) => page.getByRole("link", { name: "order:42" });
const entry = (changed: object) =>
  own.admin.xadd(
    STREAM,
    "*",
    "told",
    JSON.stringify({ client: "evil:1:0123456789abcdef", waits: {}, calls: [], ...changed }),
  );

it("blanks no view, and is counted", async () => {
  await own.admin.flushall();
  const { redis, locks } = await own.parties.join({ url: own.url });
  const served = await servePage(redis);
  onTestFinished(() => served.stop());
  await locks.lock("order:42").lock({ lease: 600_000 });
  const lost = (why: unknown) => ({
    calls: [{ ...toldCall("order:42", "lost", { heldFor: 30_000, waitedFor: 0 }), why }],
  });
  for (const changed of [
    lost(5),
    lost({ a: 1 }),
    { waits: { a: null } },
    { calls: [null] },
    { calls: [["won", {}, "", [], 1]] },
  ])
    await entry(changed);
  const page = await browser.open(served.url);
  await row(page).waitFor();
  await page.locator("#status[data-state=live]").waitFor();
  expect(await page.locator("#trouble").isHidden()).toBe(true);
  await page.keyboard.press("w");
  await page.getByText(/^5 entries were left out of holdfast:observed: not written by observe/).waitFor();
  await page.keyboard.press("n");
  // What is told by others goes on to be shown.
  await entry(lost("expired"));
  await page.getByText(/^lost \d.* ago$/).waitFor();
  await row(page).click();
  await page
    .getByRole("listitem")
    .filter({ hasText: /evil:1.*lost it, and noticed that after 30 s/ })
    .waitFor();
  await page.getByText(/^5 entries were left out/).waitFor();
});

it("a row that cannot be shown takes no other along, whatever the server sends", async () => {
  await own.admin.flushall();
  const { redis, locks } = await own.parties.join({ url: own.url });
  const served = await servePage(redis);
  onTestFinished(() => served.stop());
  for (const name of ["a", "b", "c"]) await locks.lock(name).lock({ lease: 600_000 });
  const page = await browser.open("about:blank");
  // The window comes from nowhere, and what is routed is refused on purpose.
  browser.expect(/a request|EventSource|ERR_|Failed/);
  await page.route(/part=(events|state)/, async (route) => {
    if (route.request().url().includes("part=events")) return route.fulfill({ status: 404 });
    const seen = await (await route.fetch()).json();
    if (seen.locks) seen.locks[1].holder = { ...seen.locks[1].holder, id: 7, label: { no: "text" } };
    return route.fulfill({ json: seen });
  });
  await page.goto(served.url);
  await page.getByText(/^This cannot be shown: TypeError/).waitFor();
  await expect.poll(() => page.locator("tbody tr").count(), PATIENT).toBe(3);
  expect(await page.locator("tbody a.name").count()).toBe(2);
});

import { mkdirSync, writeFileSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { toldCall } from "../support/told-call.ts";
import { Chromium } from "./browser.ts";
import { setScene, tellCalls, tellWaits, tellWaitTimes, tokenOf } from "./scene.ts";
import { CALLS, scenes, waitTimes } from "./shop.ts";

// npm run test:page -- --pictures: the pictures of docs/page.md.

const own = new OwnServer();
const browser = new Chromium();
const folder = new URL("../../docs/images/", import.meta.url);
/** Of one picture, in bytes. */
const MOST = 96 * 1_024;

it.each([
  ["now", "now", "light", 960, 500],
  ["lock", "lock/lock/order%3A4711", "light", 920, 760],
  ["blocked", "blocked", "dark", 520, 540],
  ["wait-times", "wait-times", "light", 920, 460],
  ["narrow", "now", "dark", 390, 640],
] as const)("%s", async (name, view, colorScheme, width, height) => {
  await own.admin.flushall();
  await setScene(own.admin, scenes);
  await tellWaitTimes(own.admin, waitTimes, CALLS);
  const token = await tokenOf(own.admin, "order:4711");
  const site = "InvoiceJob.run (dist/invoices.js:42:11)";
  const holds = toldCall("order:4711", "holds", { ago: 0, heldFor: 41_000, token, lease: 30_000, site });
  await tellCalls(own.admin, ["billing-7c9f", 1], [holds]);
  const tell = () => tellWaits(own.admin, ["account:1", "account:2"], 7_000);
  await tell();
  const { redis } = await own.parties.join({ url: own.url });
  const served = await servePage(redis, { actions: ["recall", "break"] });
  onTestFinished(() => served.stop());
  await fetch(`${served.url}?part=state&view=blocked`);
  await tell();
  const page = await browser.open(`${served.url}/#/${view}`, { colorScheme, viewport: { width, height } });
  await page.locator("#status[data-state=live]").waitFor();
  await page.locator("main tr, main li").nth(2).waitFor();
  // Of a lock only what is below the head, which is on the others.
  const picture = await (view.startsWith("lock/") ? page.locator("#view") : page).screenshot();
  expect(picture.length).toBeLessThan(MOST);
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL(`page-${name}.png`, folder), picture);
});

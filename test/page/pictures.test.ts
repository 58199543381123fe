import { mkdirSync, writeFileSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { Chromium } from "./browser.ts";
import { setScene, tellWaits, tellWaitTimes } from "./scene.ts";
import { CALLS, scenes, waitTimes } from "./shop.ts";

// npm run test:page -- --pictures: the pictures of docs/page.md.

const own = new OwnServer();
const browser = new Chromium();
const folder = new URL("../../docs/images/", import.meta.url);
/** Of one picture, in bytes. */
const MOST = 96 * 1_024;

it.each([
  ["now", "now", "light", 960, 500],
  ["lock", "lock/lock/order%3A4711", "light", 860, 600],
  ["blocked", "blocked", "dark", 520, 540],
  ["wait-times", "wait-times", "light", 920, 460],
  ["narrow", "now", "dark", 390, 640],
] as const)("%s", async (name, view, colorScheme, width, height) => {
  await own.admin.flushall();
  await setScene(own.admin, scenes);
  await tellWaitTimes(own.admin, waitTimes, CALLS);
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
  const picture = await page.screenshot();
  expect(picture.length).toBeLessThan(MOST);
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL(`page-${name}.png`, folder), picture);
});

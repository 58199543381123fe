import { Redis } from "ioredis";
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { forward } from "../support/ask-page.ts";
import { servePage } from "../support/served-page.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { Chromium } from "./browser.ts";

// The table of docs/page.md, "When Redis does not answer": a real Redis, and a real browser that shows it.

const browser = new Chromium();

/** A page over a connection with nothing but ioredis's own settings, and a lock that it shows. */
async function stage(redis: Redis, others = redis) {
  redis.on("error", () => {});
  const locks = createLockClient(others);
  const served = await servePage(redis, { actions: ["break"] });
  onTestFinished(async () => {
    await served.stop();
    await locks.close({ grace: 0 });
    redis.disconnect();
    others.disconnect();
  });
  await locks.lock("order:42").lock({ lease: 600_000 });
  const page = await browser.open(served.url);
  await row(page).waitFor();
  await is(page, "live");
  await page.evaluate(noteChanges);
  return { page, url: served.url, locks };
}

/** What the page showed in the moment when its dot changed. */
interface Change {
  readonly state: string | undefined;
  /** Date.now() */
  readonly at: number;
  readonly said: string;
  readonly isTroubleHidden: boolean;
  readonly left: string;
}

/** In the browser: amber lasts for two seconds, which a busy machine may let pass before a test looks. */
function noteChanges(): void {
  const at = (selector: string) => document.querySelector(selector) as HTMLElement;
  const left = () => document.querySelector<HTMLElement>(".lease .left")?.innerText ?? "";
  const changes: Change[] = [];
  new MutationObserver(() => {
    changes.push({
      state: at("#status").dataset.state,
      at: Date.now(),
      said: at("#said").innerText,
      isTroubleHidden: Boolean(at("#trouble").hidden),
      left: left(),
    });
  }).observe(at("#status"), { attributeFilter: ["data-state"] });
  Object.assign(window, { changes });
}

/** The first change to this state. */
async function changed(page: Page, state: string): Promise<Change> {
  const find = (wanted: string) =>
    (window as unknown as { changes: Change[] }).changes.find((one) => one.state === wanted);
  return until(() => page.evaluate(find, state), { what: `the page to turn ${state}` });
}

async function own(): Promise<LocalServer> {
  const server = await launchServer();
  onTestFinished(() => server.stop());
  return server;
}

const row = (page: Page) => page.getByRole("link", { name: "order:42" });
/** Long: a busy machine lets a browser wait. What failed here was late by minutes. */
const is = (page: Page, state: "live" | "late" | "away") =>
  page.waitForSelector(`#status[data-state=${state}]`, { timeout: 30_000 });
/** What it says of the age, in s: "No answer for 7 s". */
const secondsIn = (said: string) => Number(/^No answer for (\d+) s$/.exec(said)?.[1] ?? Number.NaN);
const unanswered = async (page: Page) => secondsIn(await page.locator("#said").innerText());
const left = (page: Page) => page.locator(".lease .left").innerText();

/**
 * Amber, then red in these words; nothing counts down meanwhile; and a page that is opened then
 * says the same.
 */
async function goesAway(page: Page, url: string, words: RegExp): Promise<void> {
  const { said, isTroubleHidden, left: stood } = await changed(page, "late");
  expect(secondsIn(said)).toBeGreaterThanOrEqual(6);
  expect(isTroubleHidden).toBe(true);
  const opened = browser.open(url);
  await is(page, "away");
  const seconds = await unanswered(page);
  expect(await page.locator("#trouble").innerText()).toMatch(words);
  expect(await page.locator("#trouble").innerText()).toMatch(/What you see is the last answer\.$/);
  expect(await page.evaluate(() => getComputedStyle(document.querySelector("main") as Element).opacity)).toBe(
    "0.55",
  );
  // How fast it was is no news.
  expect(await page.locator("#server").isHidden()).toBe(true);
  await expect.poll(() => unanswered(page), { timeout: 30_000 }).toBeGreaterThan(seconds + 1);
  expect(await left(page)).toBe(stood);
  const later = await opened;
  await is(later, "away");
  expect(await later.locator("#trouble").innerText()).toMatch(words);
  expect(await later.getByText(/No lock is held|free/).count()).toBe(0);
  await later.close();
}

async function comesBack(page: Page): Promise<void> {
  await is(page, "live");
  expect(await page.locator("#trouble").isHidden()).toBe(true);
  expect(await page.locator("body.away").count()).toBe(0);
  await page.locator("#server").waitFor({ timeout: 30_000 });
}

it("killed and started again, and standing still and going on: amber, red in the words of the errors, and as ever", async ({
  annotate,
}) => {
  const [killed, stopped] = [await own(), await own()];
  const [one, other] = [await stage(new Redis(killed.url)), await stage(new Redis(stopped.url))];
  await Promise.all([
    (async () => {
      await killed.kill();
      const times = timed(one.page);
      const where = `127\\.0\\.0\\.1:${killed.port}`;
      const words = new RegExp(
        `(no connection to Redis at ${where}|Redis at ${where} did not answer within 5 s) \\(status \\w+: connect ECONNREFUSED ${where}\\)`,
      );
      await goesAway(one.page, one.url, words);
      await annotate(`killed: ${await times}`);
      await killed.restart();
      await comesBack(one.page);
      // It has forgotten all of it.
      await one.page.getByText("No lock is held.").waitFor();
    })(),
    (async () => {
      stopped.suspend();
      const times = timed(other.page);
      const words = new RegExp(`Redis at 127\\.0\\.0\\.1:${stopped.port} has not answered;`);
      await goesAway(other.page, other.url, words);
      await annotate(`standing still: ${await times}`);
      stopped.resume();
      await comesBack(other.page);
      await row(other.page).waitFor();
    })(),
  ]);
});

it("slow, full, failed over: it shows the locks, and says where they are not new", async () => {
  const [behind, full] = [await own(), await own()];
  const proxy = await TcpProxy.start(behind);
  onTestFinished(() => proxy.stop());
  const group = await SentinelGroup.launch();
  onTestFinished(() => group.stop());
  await Promise.all([
    (async () => {
      const { page, url } = await stage(new Redis(proxy.url), new Redis(behind.url));
      // Answers take 1.4 s, and a look three of them. No answer has ever failed, so it is never red.
      proxy.delay(700);
      await page.getByText(/^1 lock · stale, updated \d+ s ago$/).waitFor();
      // On a busy machine a look takes so long that the dot is amber for a moment.
      expect(await page.locator("#status").getAttribute("data-state")).toMatch(/^(live|late)$/);
      const opened = await browser.open(url);
      await row(opened).waitFor();
      await is(opened, "live");
      expect(await opened.locator("#trouble").isHidden()).toBe(true);
      await opened.close();
      // Slower than a look waits for.
      proxy.delay(4_000);
      await page.close();
      const late = await browser.open(url);
      await is(late, "away");
      expect(await late.locator("#trouble").innerText()).toMatch(/has not answered|did not answer/);
      proxy.delay(0);
      await comesBack(late);
    })(),
    (async () => {
      const { page, locks } = await stage(new Redis(full.url));
      const admin = new Redis(full.url);
      onTestFinished(() => admin.disconnect());
      await admin.config("SET", "maxmemory", "1");
      await expect(locks.lock("other").lock({ wait: 500 })).rejects.toThrow(/OOM/);
      const before = await looks(admin);
      await expect.poll(() => looks(admin), { timeout: 30_000 }).toBeGreaterThan(before + 2);
      expect(await page.locator("#status").getAttribute("data-state")).toBe("live");
      await row(page).click();
      await page.getByRole("button", { name: "Force-release …" }).click();
      await page.getByLabel("Name of the lock").fill("order:42");
      await page.getByRole("button", { name: "Force-release", exact: true }).click();
      await page.getByText("The hold you saw was force-released.").waitFor();
    })(),
    (async () => {
      const { page, locks } = await stage(group.connect(), group.connect());
      await group.killPrimary();
      const since = performance.now();
      const lease = await locks.lock("behind:failover").lock();
      await page.getByRole("link", { name: "behind:failover" }).waitFor({ timeout: 30_000 });
      await row(page).waitFor();
      await is(page, "live");
      expect(performance.now() - since).toBeLessThan(30_000);
      await lease.unlock();
    })(),
  ]);
});

it("a page whose own server hangs, or has gone, says so, and what that says when it refuses", async () => {
  const server = await own();
  const redis = new Redis(server.url);
  let isOpen = true;
  const locks = createLockClient(redis);
  const served = await servePage(redis, {
    authorize: () => isOpen || new Response("Your login is over.", { status: 403 }),
  });
  onTestFinished(async () => {
    await served.stop();
    await locks.close({ grace: 0 });
    redis.disconnect();
  });
  browser.expect(/Failed to load resource|ERR_/);
  const hanging = await forward(Number(new URL(served.url).port));
  onTestFinished(() => hanging.stop());
  const far = await browser.open(`http://localhost:${hanging.port}/locks`);
  await is(far, "live");
  hanging.freeze();
  const page = await browser.open(served.url);
  await page.getByText("No lock is held.").waitFor();
  isOpen = false;
  served.ui.close();
  await page.getByText("Your login is over. What you see is the last answer.").waitFor();
  await served.stop();
  const gone = "The server of this page does not answer. What you see is the last answer.";
  await page.getByText(gone).waitFor();
  await is(far, "late");
  await far.getByText(gone).waitFor();
});

/** After how long it was amber, and red. */
async function timed(page: Page): Promise<string> {
  const since = Date.now();
  const late = await changed(page, "late");
  const away = await changed(page, "away");
  return `amber after ${late.at - since} ms, red after ${away.at - since} ms`;
}

/** How often Redis was looked through. */
async function looks(admin: Redis): Promise<number> {
  const text = await admin.info("commandstats");
  return Number(/cmdstat_scan:calls=(\d+)/.exec(text)?.[1] ?? 0);
}

import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { visible } from "../../src/util/visible.ts";
import { HOSTILE, UNPRINTABLE, worst } from "../support/hostile-texts.ts";
import { OwnServer } from "../support/own-server.ts";
import { type Served, servePage } from "../support/served-page.ts";
import { toldCall } from "../support/told-call.ts";
import { until } from "../support/until.ts";
import { Chromium, fitsWidth } from "./browser.ts";
import { tellWaits, tellWaitTimes } from "./scene.ts";

// Names, labels, values and what processes tell: every view shows them as text, and no two of them alike.

const own = new OwnServer();
const browser = new Chromium();
/** Of 64 bytes at most. */
const LABEL = "l \x1b]0;t\x07\n\u202e\u2028\\'<b>{{7*7}}";

async function serve(): Promise<Served> {
  await own.admin.flushall();
  const { redis } = await own.parties.join({ url: own.url });
  const served = await servePage(redis, { actions: ["recall", "break"], authorize: () => LABEL });
  onTestFinished(() => served.stop());
  return served;
}

const join = async () => (await own.parties.join({ url: own.url, client: { label: LABEL } })).locks;

/** All that people can read: texts, and what they are told where the pointer rests. */
const textsOf = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const texts = [document.title];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) texts.push(node.textContent ?? "");
    for (const element of document.querySelectorAll("*"))
      for (const name of ["title", "aria-label", "placeholder", "alt"])
        texts.push(element.getAttribute(name) ?? "");
    return texts;
  });

async function isHarmless(page: Page): Promise<string[]> {
  const texts = await textsOf(page);
  for (const text of texts) expect(text).not.toMatch(UNPRINTABLE);
  expect(await page.locator("main img, main script, main b b, main [onerror]").count()).toBe(0);
  expect(await fitsWidth(page)).toBe(true);
  return texts;
}

const links = (page: Page) => page.locator("main a.name");

it("all hostile names: a row for each, no two alike, and each leads to its own lock", async () => {
  const { url } = await serve();
  const locks = await join();
  const leases = [];
  for (const name of HOSTILE) leases.push(await locks.lock(name).lock());
  await tellWaitTimes(
    own.admin,
    HOSTILE.map((name) => [name, () => 1, () => 500] as const),
  );
  const page = await browser.open(`${url}/`);
  await links(page)
    .nth(HOSTILE.length - 1)
    .waitFor();
  await isHarmless(page);
  expect((await links(page).allTextContents()).sort()).toEqual(HOSTILE.map(visible).sort());
  const hrefs = await links(page).evaluateAll((all) => all.map((one) => one.getAttribute("href") ?? ""));
  expect(hrefs.map((href) => decodeURIComponent(href.slice("#/lock/lock/".length))).sort()).toEqual(
    [...HOSTILE].sort(),
  );
  for (const name of HOSTILE.filter((_, i) => i % 7 === 0)) {
    await page.goto(`${url}/#/lock/lock/${encodeURIComponent(name)}`);
    await page.getByRole("button", { name: "Force-release …" }).waitFor();
    expect(await page.locator("h1").textContent()).toBe(visible(name));
    expect(await page.title()).toBe(`${visible(name)} · Locks`);
  }
  await isHarmless(page);
  await page.goto(`${url}/#/wait-times`);
  await links(page)
    .nth(HOSTILE.length - 1)
    .waitFor();
  await isHarmless(page);
  expect(new Set(await links(page).allTextContents()).size).toBe(HOSTILE.length);
  // Kept until here: a lease that was garbage collected is warned of.
  for (const lease of leases) await lease.unlock();
});

it("labels, hosts, reasons and what a trouble says are text in every view", async () => {
  const { url } = await serve();
  const [name, other] = [worst("n"), worst("o")];
  const [a, b] = [await join(), await join()];
  const leases = [await a.lock(name).lock(), await b.lock(other).lock()];
  const waiting = [b.lock(name).lock(), a.lock(other).lock()];
  for (const one of waiting) one.then((lease) => lease.unlock()).catch(() => {});
  await tellWaitTimes(
    own.admin,
    [[name, () => 2, () => 500]],
    [
      toldCall(name, "lost", { why: worst("why"), site: worst("site") }),
      toldCall(name, "giveup", { why: LABEL }),
    ],
  );
  // Written by another program: an id of no client, and a holder that is none of ours.
  await own.admin.set(
    `holdfast:{foreign}`,
    `10 1795372576565599 1795372576565599 ${"\x1b[31m\u202e<b>x\u2028"}`,
    "PX",
    60_000,
  );
  await own.admin.xadd(
    "holdfast:observed",
    "*",
    "told",
    JSON.stringify({
      client: worst("c"),
      waits: { __proto__x: { 1: 1 }, [other]: { 9: 3 } },
      calls: [toldCall(other, "lost", { why: "\x9b31m" })],
    }),
  );
  await tellWaits(own.admin, [name, other], 7_000);
  const page = await browser.open(`${url}/`);
  await links(page).nth(2).waitFor();
  await page.locator(".loss[title]").nth(1).waitFor();
  expect((await isHarmless(page)).join("\n")).toContain(visible(LABEL));
  for (const [view, ready] of [
    [`lock/lock/${encodeURIComponent(name)}`, ".rows .lost"],
    [`lock/lock/${encodeURIComponent(other)}`, ".rows .lost"],
    ["lock/lock/foreign", ".card"],
    ["blocked", ".tree li"],
    ["wait-times", "main a.name"],
  ]) {
    await page.goto(`${url}/#/${view}`);
    await page
      .locator(ready ?? "")
      .first()
      .waitFor();
    await isHarmless(page);
  }
  await page.goto(`${url}/#/lock/lock/${encodeURIComponent(name)}`);
  await page.getByRole("button", { name: "Force-release …" }).click();
  await isHarmless(page);
  // As it is printed; what is typed with the keys cannot be the name itself.
  await page.getByLabel("Name of the lock").fill(visible(name));
  await page.getByRole("button", { name: "Force-release", exact: true }).click();
  await page.locator("#toast").waitFor();
  await isHarmless(page);
  expect(leases[0]?.name).toBe(name);
  await Promise.allSettled(leases.map((lease) => lease.unlock()));
  await Promise.allSettled(waiting);
});

it("processes are counted where they wait, and their callers where a lock is fair", async () => {
  const { url } = await serve();
  const [holder, busy, calm] = [await join(), await join(), await join()];
  const leases = [await holder.lock("plain").lock(), await holder.lock("fair").lock()];
  const waiting = [busy, busy, busy, calm].flatMap((locks) => [
    locks.lock("plain").lock(),
    locks.fairLock("fair").lock(),
  ]);
  for (const one of waiting) one.then((lease) => lease.unlock()).catch(() => {});
  await until(async () => (await holder.lock("fair").inspect()).waiters?.length === 4);
  await until(async () => (await holder.lock("plain").inspect()).waiters?.length === 2);
  const page = await browser.open(`${url}/`);
  await page.getByRole("columnheader", { name: "Waiting processes", exact: true }).waitFor();
  await page.getByRole("columnheader", { name: "Longest wait", exact: true }).waitFor();
  const counts = async () => (await page.locator("td .count").allTextContents()).join();
  await until(async () => (await counts()) === "2,2");
  await page.goto(`${url}/#/lock/lock/plain`);
  await page
    .getByRole("heading", { name: /^2 waiting processes, up to .* m?s, the next one first$/ })
    .waitFor();
  await page.goto(`${url}/#/lock/lock/fair`);
  await page
    .getByRole("heading", { name: /^2 waiting processes, with 4 callers, up to .* m?s, the next one first$/ })
    .waitFor();
  for (const lease of leases) await lease.unlock();
  for (const one of waiting) await one;
  await page.getByText("It is free, and no process waits.").waitFor();
});

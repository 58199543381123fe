import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { createLockClient, type LockClient } from "../../src/index.ts";
import type { LockUIOptions } from "../../src/tools/ui/index.ts";
import { Actor } from "../support/actor.ts";
import { OwnServer } from "../support/own-server.ts";
import { running } from "../support/result-runs.ts";
import { type Served, servePage } from "../support/served-page.ts";
import { toldCall } from "../support/told-call.ts";
import { Chromium, fitsWidth } from "./browser.ts";
import { type Scene, setScene, tellWaitTimes } from "./scene.ts";
import { CALLS, scenes, waitTimes } from "./shop.ts";

/** A busy machine lets a browser wait. */
const PATIENT = { timeout: 30_000 };

const own = new OwnServer();
const browser = new Chromium();

/** The page on an empty Redis. */
async function serve(options: Partial<LockUIOptions> = {}, url = own.url): Promise<Served> {
  await own.admin.flushall();
  const { redis } = await own.parties.join({ url });
  const served = await servePage(redis, options);
  onTestFinished(() => served.stop());
  return served;
}

const join = async () => (await own.parties.join({ url: own.url })).locks;
const live = (page: Page) => page.waitForSelector("#status[data-state=live]");
const rows = (page: Page) => page.locator("tbody tr");
const shows = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

it("an empty Redis: says so, and a lock appears and goes without a reload", async () => {
  const { url } = await serve();
  const page = await browser.open(url);
  expect(page.url()).toBe(url);
  await shows(page, "No lock is held.");
  const locks = await join();
  const lease = await locks.lock("order:42").lock();
  await page.getByRole("link", { name: "order:42" }).waitFor();
  const row = rows(page).first();
  expect(await row.innerText()).toContain(`:${process.pid}`);
  await row.getByText(/^(29|30) s$/).waitFor();
  await lease.unlock();
  await shows(page, "No lock is held.");
});

const waiting = async (locks: LockClient) => (await locks.lock("order:42").inspect()).waiters?.length;

it("one lock: its holder, its queue in order, its times go on; a click on the row opens it", async () => {
  const { url } = await serve();
  const [a, b] = [await join(), await join()];
  const lease = await a.lock("order:42").lock();
  const first = b.lock("order:42").lock();
  // RACE: one whose try is under way when the subscription is acknowledged queues after the other one.
  await expect.poll(() => waiting(a), PATIENT).toBe(1);
  const second = b.fairLock("order:42").lock();
  await expect.poll(() => waiting(a), PATIENT).toBe(2);
  const page = await browser.open(`${url}/`);
  await rows(page).first().locator("td").nth(1).click();
  await page.getByRole("heading", { name: "order:42" }).waitFor();
  expect(page.url()).toContain("#/lock/lock/order%3A42");
  await shows(page, /^1 waiting process, with 2 callers, up to .* m?s, the next one first$/);
  expect(await page.locator(".rows .waits").count()).toBe(2);
  expect(await page.locator("button").count()).toBe(0); // it only shows
  const held = page.locator(".card dd").first();
  const before = await held.innerText();
  await expect.poll(() => held.innerText(), PATIENT).not.toBe(before);
  await lease.unlock();
  await shows(page, /^1 waiting process, up to .* m?s, the next one first$/);
  await (await first).unlock();
  await (await second).unlock();
  await shows(page, "It is free, and no process waits.");
});

it("5 000 locks: the foremost 500, and the search finds all others", async ({ annotate }) => {
  const { url } = await serve();
  const many = Array.from({ length: 5_000 }, (_, i) => ({
    name: `job:${i}`,
    by: ["worker-1", i] as const,
    held: i,
    left: 600_000,
  }));
  await setScene(own.admin, [
    ...many,
    { name: "wanted", by: ["web-1", 1], held: 5, left: 600_000, waiters: [["web-2", 2, 9_000]] },
  ]);
  const since = performance.now();
  const page = await browser.open(`${url}/`);
  await rows(page).nth(499).waitFor();
  await annotate(`shown after ${Math.round(performance.now() - since)} ms`);
  expect(await rows(page).count()).toBe(500);
  await shows(page, "5 001 locks, 500 of 5 001 shown");
  expect(await rows(page).first().innerText()).toContain("wanted");
  await page.getByRole("searchbox").fill("job:4321");
  await expect.poll(() => rows(page).count(), PATIENT).toBe(1);
  await shows(page, "1 of 5 001 locks");
  await page.getByRole("searchbox").fill("worker-1:77:");
  await expect
    .poll(async () => (await rows(page).first().innerText()).includes("job:77"), PATIENT)
    .toBe(true);
});

it("hostile names and labels are text, and nothing but text", async () => {
  const { url } = await serve({ actions: ["recall", "break"] });
  const names = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "../../../act?x=1#/now",
    "%2e%2e/100%",
    "\u202Egnol sdrawkcab\u0000\u001b[31m",
    "#/lock/lock/other",
    "constructor",
    "é☃😀{}",
    "w".repeat(512),
  ];
  const locks = await join();
  const leases = await Promise.all(names.map((name) => locks.lock(name).lock()));
  await tellWaitTimes(own.admin, [], [toldCall(names[0] ?? "", "lost", { heldFor: 5, why: "\u202Eevil" })]);
  const page = await browser.open(`${url}/`);
  await rows(page)
    .nth(names.length - 1)
    .waitFor();
  expect(await page.locator(".loss[title]").getAttribute("title")).toMatch(/5 ms: \\u202eevil$/);
  expect(await page.locator("main img, main script").count()).toBe(0);
  const links = await page
    .locator("a.name")
    .evaluateAll((all) => all.map((one) => one.getAttribute("href") ?? ""));
  expect(links.map((link) => decodeURIComponent(link.slice("#/lock/lock/".length))).sort()).toEqual(
    [...names].sort(),
  );
  for (const link of links) {
    await page.goto(`${url}/${link}`);
    await page.getByRole("button", { name: "Force-release …" }).waitFor();
    expect(await fitsWidth(page)).toBe(true);
  }
  await page.goto(`${url}/#/lock/lock/${encodeURIComponent(names[5] ?? "")}`);
  await shows(page, "\\u202egnol sdrawkcab\\u0000\\u001b[31m");
  for (const lease of leases) await lease.unlock();
});

it("break ends the hold that was seen, and never the one that came after it", async () => {
  const { url } = await serve({ actions: ["recall", "break"], authorize: () => "alice" });
  const [a, b] = [await join(), await join()];
  const stale = await a.lock("order:42").lock();
  const page = await browser.open(`${url}/#/lock/lock/order%3A42`);
  const pressed = async () => {
    await page.getByRole("button", { name: "Force-release …" }).click();
    const sure = page.getByRole("button", { name: "Force-release", exact: true });
    expect(await sure.isDisabled()).toBe(true);
    await page.getByLabel("Name of the lock").fill("order:42");
    return sure;
  };
  const sure = await pressed();
  await stale.unlock();
  const next = await b.lock("order:42").lock();
  await sure.click();
  await shows(page, "The holder that you saw has gone: nothing was done.");
  expect((await b.lock("order:42").inspect()).token).toBe(next.token);
  await page.locator(".card .mono").getByText(String(next.token)).waitFor();
  await (await pressed()).click();
  await shows(page, "The hold you saw was force-released.");
  expect(await b.lock("order:42").isLocked()).toBe(false);
  await expect(next.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

it("a run of remember: its holder, its waiters, and no result; its force-release lets the next one run", async () => {
  const { url } = await serve({ actions: ["break"], authorize: () => "alice" });
  const [a, b] = [await join(), await join()];
  // What it leaves is in Redis for 15 s.
  await a.remember("charge:42", { keep: 0 }, () => "a secret");
  const { ended } = await running(a, "charge:42", { label: "invoice 7" });
  const waiting = b.remember("charge:42", { keep: 60_000 }, () => "another secret");
  const page = await browser.open(`${url}/`);
  const row = page.getByRole("row", { name: /charge:42/ });
  await expect.poll(() => row.innerText(), PATIENT).toMatch(/remember[\s\S]*invoice 7[\s\S]*\b1\b/);
  await row.getByRole("link").click();
  await shows(page, /^1 waiting process, up to .* m?s, the next one first$/);
  await page.locator(".card").getByText("invoice 7").waitFor();
  expect(await page.content()).not.toContain("secret");
  await page.getByRole("button", { name: "Force-release …" }).click();
  await page.getByLabel("Name of the lock").fill("charge:42");
  await page.getByRole("button", { name: "Force-release", exact: true }).click();
  await shows(page, "The hold you saw was force-released.");
  expect(await ended).toMatchObject({ code: "LOCK_LOST", reason: "revoked", by: "alice" });
  expect(await waiting).toMatchObject({ value: "another secret", ran: true });
  await shows(page, "It is free, and no process waits.");
  expect(await page.content()).not.toContain("secret");
});

it("two tabs share one look at Redis, and nobody asks while nobody looks", async () => {
  const { url, ui } = await serve();
  await (await join()).lock("order:42").lock();
  const scans = async () => {
    const text = await own.admin.info("commandstats");
    return Number(/cmdstat_scan:calls=(\d+)/.exec(text)?.[1] ?? 0);
  };
  const tabs = [await browser.open(`${url}/`), await browser.open(`${url}/#/blocked`)];
  await Promise.all(tabs.map(live));
  const before = await scans();
  const ages = await Promise.all(
    tabs.map((page) => page.waitForResponse(/never/, { timeout: 4_500 }).catch(() => 0)),
  );
  expect(ages).toEqual([0, 0]);
  expect((await scans()) - before).toBeLessThanOrEqual(4); // in 4.5 s: each 2 s one
  for (const page of tabs) await page.close();
  const over = await scans();
  const locks = createLockClient(own.admin);
  for (let i = 0; i < 3; i++) await locks.lock("other").inspect();
  await new Promise((later) => setTimeout(later, 2_500));
  expect((await scans()) - over).toBeLessThanOrEqual(1);
  ui.close();
});

it("a search typed right before another view is opened leaves that view as it is", async () => {
  const { url } = await serve();
  await setScene(own.admin, scenes);
  const page = await browser.open(`${url}/`);
  await rows(page).nth(9).waitFor();
  await page.evaluate(async () => {
    const search = document.getElementById("search") as HTMLInputElement;
    search.value = "order";
    search.dispatchEvent(new Event("input"));
    document.querySelector<HTMLElement>("nav [data-view=blocked]")?.click();
    await new Promise((resolve) => setTimeout(resolve, 300)); // a search counts after 200 ms
  });
  expect(new URL(page.url()).hash).toBe("#/blocked");
  await page.keyboard.press("n");
  await page.locator("nav [aria-current=page]").getByText("Now").waitFor();
  await rows(page).nth(9).waitFor();
});

it("everything can be done by the keyboard", async () => {
  const { url } = await serve();
  await setScene(own.admin, scenes);
  const page = await browser.open(`${url}/`);
  await rows(page).nth(9).waitFor();
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  expect(await focused()).toBe("stock:sku-981");
  await page.keyboard.press("k");
  expect(await focused()).toBe("order:4711");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "order:4711" }).waitFor();
  await page.keyboard.press("Escape");
  await rows(page).first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("nobh:");
  expect(await page.getByRole("searchbox").inputValue()).toBe("nobh:");
  await page.keyboard.press("Escape");
  for (const [key, view] of [
    ["b", "Blocked"],
    ["w", "Wait times"],
    ["n", "Now"],
  ] as const) {
    await page.keyboard.press(key);
    await page.locator("nav [aria-current=page]").getByText(view).waitFor();
  }
});

it("two processes whose callers wait for each other: a deadlock, with both of them, until its hold is broken", async () => {
  const { url, locks } = await serve();
  const actors = await Promise.all(
    ["billing", "shipping"].map((label) =>
      Actor.start({ url: own.url, client: { label, deadlocks: "warn" } }),
    ),
  );
  onTestFinished(() => {
    for (const actor of actors) actor.kill();
  });
  const names = ["account:1", "account:2"];
  const ends = actors.map((actor, i) => actor.call("nest", names[i] ?? "", names[1 - i] ?? ""));
  const page = await browser.open(`${url}/#/blocked`);
  await page.getByText("Deadlock: 2 callers wait for each other").waitFor({ timeout: 40_000 });
  const lines = await page.locator(".round > li").allInnerTexts();
  const words = lines.map((line) => line.replaceAll(/\s+/g, " ")).sort();
  for (const [i, label] of ["billing", "shipping"].entries())
    expect(words[i]).toMatch(
      new RegExp(
        `^${label} \\S+:${actors[i]?.pid} holds ${names[i]} for \\d.* s waits for ${names[1 - i]} for \\d.* s$`,
      ),
    );
  await shows(page, "waits in a deadlock");
  expect(await page.getByText("deadlock not proven").count()).toBe(0);
  await page.keyboard.press("n");
  expect(await page.locator("#alarm").innerText()).toBe("1");
  await page.keyboard.press("b");
  await locks.lock("account:1").forceUnlock();
  await Promise.all(ends);
  await shows(page, "No process is blocked.");
  expect(await page.locator("#alarm").isHidden()).toBe(true);
});

it("blocked clients are a tree, and processes that have waited for each other for 10 s are marked", async () => {
  const { url } = await serve();
  // In the scene itself they have waited for less.
  const isRound = ({ name }: Scene) => name.startsWith("account:");
  await setScene(
    own.admin,
    scenes.map((one) => ({
      ...one,
      waiters:
        one.waiters?.map(([host, pid, ago]) => [host, pid, isRound(one) ? 20_000 : ago] as const) ?? [],
    })),
  );
  const page = await browser.open(`${url}/#/blocked`);
  await page.locator(".tree > li").nth(1).waitFor();
  const [, first] = await page.locator(".tree > li").allInnerTexts();
  expect(first?.replaceAll(/\s+/g, " ")).toMatch(
    /^nightly invoices billing-7c9f:1 holds order:4711 .*web-1:2041 .*holds stock:sku-981 .*picker-4:88 .*picker-2:91/,
  );
  expect(await page.getByText("deadlock not proven", { exact: true }).count()).toBe(1);
});

it("wait times show what observed processes have told, and the lock's page what happened to it", async () => {
  const { url } = await serve();
  const page = await browser.open(`${url}/#/wait-times`);
  await shows(page, "No process is being observed.");
  await tellWaitTimes(own.admin, waitTimes, CALLS);
  await rows(page).nth(5).waitFor();
  await shows(page, "Reported by 4 processes, most waits and losses first");
  expect(await page.locator(".strip svg").first().locator("rect").count()).toBeGreaterThan(30);
  await page.getByRole("link", { name: "order:4711" }).click();
  await shows(page, /lost it, and noticed that after 30 s/);
});

it("an election's leader is shown with what it publishes, as text", async () => {
  const { url } = await serve();
  const { locks } = await own.parties.join({ url: own.url });
  const value = `http://10.0.0.7:8080/<b>${"x".repeat(300)}`;
  const term = await locks.election("scheduler").campaign({ value });
  const page = await browser.open(`${url}/#/lock/election/scheduler`, {
    viewport: { width: 390, height: 844 },
  });
  await shows(page, value);
  expect(await fitsWidth(page)).toBe(true);
  await term.proclaim("moved");
  await shows(page, "moved");
  await term.resign();
  await shows(page, "It is free, and no process waits.");
});

it.each(["light", "dark"] as const)(
  "360 px wide, %s: nothing is cut off, in no view",
  async (colorScheme) => {
    const { url } = await serve({ actions: ["recall", "break"] });
    await setScene(own.admin, [
      ...scenes,
      { name: "x".repeat(400), by: ["h".repeat(60), 1], held: 5, left: 60_000 },
    ]);
    await tellWaitTimes(own.admin, waitTimes, CALLS);
    const page = await browser.open(`${url}/`, { viewport: { width: 360, height: 740 }, colorScheme });
    for (const view of ["now", "lock/lock/order%3A4711", "blocked", "wait-times"]) {
      await page.goto(`${url}/#/${view}`);
      await live(page);
      await expect.poll(() => page.locator("main tr, main li").count(), PATIENT).toBeGreaterThan(2);
      expect(await fitsWidth(page)).toBe(true);
    }
    // The narrowest one in which rows are rows.
    await page.setViewportSize({ width: 841, height: 740 });
    await page.goto(`${url}/#/now`);
    await rows(page).nth(9).waitFor();
    expect(await fitsWidth(page)).toBe(true);
    const ground = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const [red = 0] = (/\d+/.exec(ground) ?? []).map(Number);
    expect(red < 128).toBe(colorScheme === "dark");
  },
);

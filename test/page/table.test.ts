import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { OwnServer } from "../support/own-server.ts";
import { type Served, servePage } from "../support/served-page.ts";
import { Chromium, fitsWidth } from "./browser.ts";
import { setScene, tellWaitTimes } from "./scene.ts";
import { CALLS, scenes as shop, waitTimes } from "./shop.ts";

// The tables: how dense they are, what sorts and narrows them, and how much they bear.

/** The shop, with leases that outlast a test. */
const scenes = shop.map((scene) => ({ ...scene, left: 600_000 }));

const own = new OwnServer();
const browser = new Chromium();
/** A busy machine lets a browser wait. */
const PATIENT = { timeout: 30_000 };
const PHONE = { viewport: { width: 390, height: 760 } };

async function serve(): Promise<Served> {
  await own.admin.flushall();
  const { redis } = await own.parties.join({ url: own.url });
  const served = await servePage(redis);
  onTestFinished(() => served.stop());
  return served;
}

const names = (page: Page) => page.locator("tbody a.name").allInnerTexts();
const heights = (page: Page) =>
  page
    .locator("tbody tr")
    .evaluateAll((rows) => rows.map((row) => Math.round(row.getBoundingClientRect().height)));
const sorts = (page: Page) =>
  page.locator("th").evaluateAll((all) => all.map((one) => one.getAttribute("aria-sort")));

/** Whether a process is named whole: host and pid of each holder, as far as a window shows them. */
const areWhole = (page: Page) =>
  page
    .locator("td.holder :is(b, small)")
    .evaluateAll((all) => all.every((one) => one.scrollWidth <= (one.parentElement?.clientWidth ?? 0)));

it("a row has one line, and one more for host and pid below a label; 390 px wide it has another one, and is still a table's row", async () => {
  const { url } = await serve();
  // Such as Kubernetes names them.
  const pod = ["invoice-worker-7c9f8d6b5c-x2x4q", 4_194_303] as const;
  await setScene(own.admin, [
    ...scenes,
    { name: "pod", by: pod, held: 5, left: 600_000, label: "nightly invoices" },
    { name: "pod:2", by: pod, held: 5, left: 600_000 },
  ]);
  await tellWaitTimes(own.admin, waitTimes, CALLS);
  const page = await browser.open(`${url}/`);
  await page.locator(".loss").first().waitFor();
  await expect.poll(() => page.locator("tbody tr").count(), PATIENT).toBe(scenes.length + 2);
  for (const height of await heights(page)) expect(height).toBeLessThanOrEqual(66);
  expect(await areWhole(page)).toBe(true);
  await page.setViewportSize({ width: 1_280, height: 900 });
  expect(await areWhole(page)).toBe(true);
  const row = page.getByRole("row", { name: /order:4711/ });
  expect((await row.innerText()).replaceAll(/\s+/g, " ")).toMatch(
    /order:4711 +lost .* nightly invoices billing-7c9f:1/,
  );

  const phone = await browser.open(`${url}/`, PHONE);
  await phone.locator(".loss").first().waitFor();
  await expect.poll(() => phone.locator("tbody tr").count(), PATIENT).toBe(scenes.length + 2);
  for (const height of await heights(phone)) expect(height).toBeLessThanOrEqual(100);
  expect(await areWhole(phone)).toBe(true);
  expect(await fitsWidth(phone)).toBe(true);
  for (const window of [page, phone]) {
    const table = window.getByRole("table", { name: /^Locks that are held or waited for/ });
    expect(await table.getByRole("row").count()).toBe(scenes.length + 3);
    expect(await table.getByRole("columnheader").allInnerTexts()).toHaveLength(6);
    expect(
      await table
        .getByRole("row", { name: /order:4711/ })
        .getByRole("cell")
        .count(),
    ).toBe(6);
  }
});

it("columns sort by the keyboard, and waited-for narrows; both stay in the address, over a reload and back from a lock", async () => {
  const { url } = await serve();
  await setScene(own.admin, scenes);
  const page = await browser.open(`${url}/`);
  await expect.poll(async () => (await names(page))[0], PATIENT).toBe("order:4711");
  expect(await sorts(page)).toEqual(["none", "none", "none", "none", "none", "descending"]);
  await page.getByRole("columnheader", { name: "Held for" }).getByRole("button").focus();
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await names(page))[0], PATIENT).toBe("import:catalogue");
  expect(await sorts(page)).toEqual(["none", "none", "descending", "none", "none", "none"]);
  expect(await page.evaluate(() => document.activeElement?.textContent)).toContain("Held for");
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await names(page)).at(-1), PATIENT).toBe("import:catalogue");
  expect(await sorts(page)).toEqual(["none", "none", "ascending", "none", "none", "none"]);

  await page.getByRole("columnheader", { name: "Lock" }).getByRole("button").click();
  const waited = page.getByRole("button", { name: /^Waited for/ });
  expect(await waited.getAttribute("aria-pressed")).toBe("false");
  await waited.focus();
  await page.keyboard.press("Space");
  const all = scenes.filter(({ waiters }) => waiters).map(({ name }) => name);
  await expect.poll(() => names(page), PATIENT).toEqual(all.sort());
  await page.getByText(`${all.length} of ${scenes.length} locks`).waitFor();
  expect(new URL(page.url()).hash).toBe("#/now?sort=name&only=waited");
  await page.reload();
  await expect.poll(() => names(page), PATIENT).toEqual(all);
  expect(await waited.getAttribute("aria-pressed")).toBe("true");
  for (const back of ["Escape", "n", "link"]) {
    await page.getByRole("main").getByRole("link", { name: "order:4711" }).click();
    await page.getByRole("heading", { name: "order:4711" }).waitFor();
    if (back === "link") await page.getByRole("link", { name: "Back to the locks" }).click();
    else await page.keyboard.press(back);
    await expect.poll(() => names(page), PATIENT).toEqual(all);
  }
  await page.getByRole("searchbox").fill("nightly");
  await expect.poll(() => names(page), PATIENT).toEqual(["order:4711"]);
  expect(new URL(page.url()).hash).toBe("#/now?sort=name&only=waited&search=nightly");
  // The mark above leads to all locks.
  await page.getByRole("link", { name: "Holdfast" }).click();
  await expect.poll(async () => (await names(page)).length, PATIENT).toBe(scenes.length);
  expect(await page.getByRole("searchbox").inputValue()).toBe("");
  // What is no filter goes no further.
  await page.goto(`${url}/#/now?sort=constructor&view=lock&part=act`);
  await expect.poll(async () => (await names(page))[0], PATIENT).toBe("order:4711");
  await page.goto(`${url}/#/nowhere`);
  await expect.poll(async () => (await names(page))[0], PATIENT).toBe("order:4711");
});

it("390 px wide a menu sorts", async () => {
  const { url } = await serve();
  await setScene(own.admin, scenes);
  const page = await browser.open(`${url}/`, PHONE);
  await page.getByLabel("Sort by").selectOption("Lock");
  await expect.poll(() => names(page), PATIENT).toEqual(scenes.map(({ name }) => name).sort());
});

it("the focus stays with its lock while rows move, and goes to the row in its place when the lock has gone", async () => {
  const { url } = await serve();
  await setScene(own.admin, scenes);
  const page = await browser.open(`${url}/`);
  await page.getByRole("main").getByRole("link", { name: "report:daily" }).focus();
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  await own.admin.zadd(
    "holdfast:{report:daily}:queue",
    (Date.now() - 900_000) * 1_000,
    `1 3000 0 ${await holder()}`,
  );
  await expect.poll(async () => (await names(page))[0], PATIENT).toBe("report:daily");
  expect(await focused()).toBe("report:daily");
  await own.admin.del("holdfast:{report:daily}", "holdfast:{report:daily}:queue");
  await expect.poll(async () => (await names(page))[0], PATIENT).toBe("order:4711");
  expect(await focused()).toBe("order:4711");
});

/** The id of a hold of another client. */
const holder = async () => ((await own.admin.get("holdfast:{order:4711}")) ?? "").split(" ")[3];

it("what can be turned on is said where nothing is known of earlier calls", async () => {
  const { url } = await serve();
  await setScene(own.admin, scenes);
  const page = await browser.open(`${url}/#/lock/lock/order%3A4711`);
  await page.getByText("What was before is not known: no process is being observed.").waitFor();
  await page.getByRole("link", { name: "How to turn it on" }).click();
  await page.getByText('import { observe } from "holdfast/ui"; observe(locks, redis);').waitFor();
  await tellWaitTimes(own.admin, waitTimes, []);
  await page.goto(`${url}/#/lock/lock/order%3A4711`);
  await page.getByText("No call has ended in the last 15 minutes, in which 4 processes reported.").waitFor();
});

/** In the browser: the longest time for which it could not react, in ms. */
function noteTasks(): void {
  Object.assign(window, { longest: 0 });
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries())
      Object.assign(window, {
        longest: Math.max(duration, (window as unknown as { longest: number }).longest),
      });
  }).observe({ type: "longtask", buffered: true });
}
const longest = (page: Page) => page.evaluate(() => (window as unknown as { longest: number }).longest);

it("12 000 locks: 500 are shown and said to be, any order is an order of all that were read, and the page never freezes", async ({
  annotate,
}) => {
  const { url } = await serve();
  await setScene(
    own.admin,
    Array.from({ length: 12_000 }, (_, i) => ({
      name: `job:${String(i).padStart(5, "0")}`,
      by: [`worker-${i % 30}`, i] as const,
      held: i * 20,
      left: 3_600_000,
      ...(i % 50 === 1 && { waiters: [["web-2", 2, i * 10] as const] }),
    })),
  );
  const page = await browser.open("about:blank");
  browser.expect(/a request/);
  await page.addInitScript(noteTasks);
  await page.goto(`${url}/`);
  await page.getByText("12 000 locks, 500 of 12 000 shown").waitFor(PATIENT);
  await expect.poll(async () => (await names(page))[0], PATIENT).toBe("job:11951");
  await page.goto(`${url}/#/now?sort=-held`);
  await expect.poll(async () => (await names(page))[0], PATIENT).toBe("job:11999");
  await page
    .getByText("12 000 locks, 500 of 12 000 shown, sorted among the longest waits and holds")
    .waitFor();
  await page.getByRole("button", { name: /^Waited for/ }).click();
  await expect.poll(async () => (await names(page)).length, PATIENT).toBe(240);
  await page.getByText("240 of 12 000 locks").waitFor();
  await annotate(`at most ${Math.round(await longest(page))} ms without a reaction`);
  expect(await longest(page)).toBeLessThan(2_000);
});

it("the wait times of 1 000 locks: the 100 with the most waits, without a freeze, and rows stay when their times change", async ({
  annotate,
}) => {
  const { url } = await serve();
  const many = Array.from(
    { length: 1_000 },
    (_, i) => [`job:${i}`, () => (i < 100 ? 9 : 1), (s: number) => i * s] as const,
  );
  for (let i = 0; i < many.length; i += 100) await tellWaitTimes(own.admin, many.slice(i, i + 100));
  const page = await browser.open("about:blank");
  browser.expect(/a request/);
  await page.addInitScript(noteTasks);
  await page.goto(`${url}/#/wait-times`);
  await expect.poll(async () => (await names(page)).length, PATIENT).toBe(100);
  expect((await names(page)).sort()).toEqual(
    many
      .slice(0, 100)
      .map(([name]) => name)
      .sort(),
  );
  await page.getByRole("link", { name: "job:7", exact: true }).focus();
  await tellWaitTimes(own.admin, [["job:7", () => 50, () => 30]]);
  await expect.poll(async () => (await names(page))[0], PATIENT).toBe("job:7");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("job:7");
  await annotate(`at most ${Math.round(await longest(page))} ms without a reaction`);
  expect(await longest(page)).toBeLessThan(2_000);
});

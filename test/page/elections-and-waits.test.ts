import { expect, it, onTestFinished } from "vitest";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { Chromium, fitsWidth } from "./browser.ts";
import { setScene } from "./scene.ts";

// Candidates that stand by are well, an election without a leader is not, and waits in progress
// are wait times.

const own = new OwnServer();
const browser = new Chromium();
/** A busy machine lets a browser wait. */
const PATIENT = { timeout: 30_000 };

const micros = (ago: number): number => (Date.now() - ago) * 1_000;
const hold = (number: number): string =>
  `holdfast:client:sched-${number}:7:0123456789abcde${number}:0000000${number}${"a".repeat(13)}`;
const standBy = (name: string, ago: number) =>
  own.admin.zadd(`holdfast:election:{${name}}:queue`, micros(ago), `1 3000 0 ${hold(2)}`);

async function serve(): Promise<string> {
  const { redis } = await own.parties.join({ url: own.url });
  const served = await servePage(redis);
  onTestFinished(() => served.stop());
  return served.url;
}

it("a candidate on standby is a calm row; without a leader the line on top says so", async () => {
  await own.admin.flushall();
  await standBy("scheduler", 900_000);
  const token = micros(1_000_000);
  await own.admin.set("holdfast:election:{scheduler}", `10 ${token} ${token} ${hold(1)}`, "PX", 600_000);
  const url = await serve();
  const page = await browser.open(`${url}/`);
  const row = page.getByRole("row", { name: /scheduler/ });
  await expect.poll(() => row.innerText(), PATIENT).toMatch(/sched-1:7[\s\S]*\b1\s+standby/);
  expect(await row.getAttribute("data-level")).toBe("fine");
  expect(`${await row.getAttribute("class")}`).not.toMatch(/waited/);
  const line = page.locator("#verdict");
  await expect.poll(() => line.innerText(), PATIENT).toMatch(/All is well\.\s+No process is waiting\./);
  const one = await browser.open(`${url}/#/lock/election/scheduler`);
  await one.getByRole("heading", { name: "1 candidate on standby, the next one first" }).waitFor(PATIENT);
  const place = one.locator(".rows .waits");
  expect(await place.innerText()).toMatch(/sched-2:7\s+stands by for 1[56] min/);

  await own.admin.del("holdfast:election:{scheduler}");
  await expect
    .poll(() => line.innerText(), PATIENT)
    .toMatch(/No leader:\s+scheduler for 1\d s, with 1 candidate\./);
  await one.getByRole("heading", { name: /^No leader, 1 candidate, up to 1\d s/ }).waitFor(PATIENT);
  expect(await place.innerText()).toMatch(/sched-2:7\s+waits for 1[56] min/);
  expect(await row.getAttribute("data-level")).toBe("long");
});

it("a wait in progress grows in the wait times, and on the page of its lock, at any width", async () => {
  await own.admin.flushall();
  await setScene(own.admin, [
    {
      ...{ name: "import:catalogue", by: ["jobs-2", 1], held: 840_000, left: 600_000 },
      waiters: [1, 2, 3].map((number) => [`web-${number}`, 1, 80_000 + number] as const),
    },
  ]);
  const url = await serve();
  for (const width of [1_280, 390]) {
    const page = await browser.open(`${url}/#/wait-times`, { viewport: { width, height: 760 } });
    const row = page.getByRole("row", { name: /import:catalogue/ });
    await expect.poll(() => row.innerText(), PATIENT).toMatch(/3, up to [12] min \d\d s/);
    expect(await row.getAttribute("data-level")).toBe("bad");
    const before = await row.innerText();
    await expect.poll(() => row.innerText(), PATIENT).not.toBe(before);
    expect(await fitsWidth(page)).toBe(true);
    // Its name is not cut.
    expect(
      await row.locator("a").evaluate((link) => link.scrollWidth <= (link.parentElement?.clientWidth ?? 0)),
    ).toBe(true);
    await row.locator("a").click();
    const heading = /^3 waiting processes, up to [12] min \d\d s, the next one first$/;
    await page.getByRole("heading", { name: heading }).waitFor(PATIENT);
  }
});

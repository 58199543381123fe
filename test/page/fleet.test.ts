import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { Cli } from "../support/cli.ts";
import { until } from "../support/until.ts";
import { Chromium, fitsWidth } from "./browser.ts";

// holdfast ui --demo: what its knobs show in a browser.

/** Leases of 10 s must end, on a busy machine. */
const PATIENT = { timeout: 60_000 };

const browser = new Chromium();

async function open(options: Parameters<Chromium["open"]>[1] = {}): Promise<Page> {
  const cli = new Cli("redis://127.0.0.1:1", ["ui", "--demo", "--port", "0", "--json"]);
  await cli.says("\n");
  const page = await browser.open((JSON.parse(cli.stdout) as { url: string }).url, options);
  await knob(page, "Crash web-1").waitFor();
  return page;
}

const knob = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const row = (page: Page, name: string) => page.locator("main tbody tr").filter({ hasText: name });
const stateOf = (page: Page, name: string) =>
  page.locator("#demo li").filter({ hasText: name }).locator(".state");
const MUG = "stock:blue-mug";

it("a crash: the dead process holds the lock until its lease ends, others wait, and one of them gets it", async () => {
  const page = await open();
  await knob(page, "Crash web-1").click();
  await expect.poll(() => stateOf(page, "web-1").innerText(), PATIENT).toBe("dead");
  await row(page, MUG).filter({ hasText: "web-1:2041" }).waitFor(PATIENT);
  await row(page, MUG)
    .filter({ hasText: /web-[23]:\d+/ })
    .waitFor(PATIENT);
  await knob(page, "Start again web-1").click();
  await expect.poll(() => stateOf(page, "web-1").innerText(), PATIENT).toBe("sells mugs");
  await page.locator("main").getByText("web-1:2048").first().waitFor(PATIENT);
});

it("a pause: another process gets the lock, and after Resume the loss is in the lock's timeline", async () => {
  const page = await open();
  await knob(page, "Pause web-2").click();
  await expect.poll(() => stateOf(page, "web-2").innerText(), PATIENT).toBe("stands still");
  await row(page, MUG).filter({ hasText: "web-2:2210" }).waitFor(PATIENT);
  await row(page, MUG)
    .filter({ hasText: /web-[13]:\d+/ })
    .waitFor(PATIENT);
  await knob(page, "Resume web-2").click();
  await row(page, MUG).getByRole("link").click();
  await page.locator(".rows .lost").filter({ hasText: "web-2:2210" }).first().waitFor(PATIENT);
});

it("a cut: the process loses its lock, and works again after Mend", async () => {
  const page = await open();
  await knob(page, "Cut jobs-1").click();
  await expect.poll(() => stateOf(page, "jobs-1").innerText(), PATIENT).toBe("has no Redis");
  await expect.poll(() => row(page, "import:catalogue").count(), PATIENT).toBe(0);
  await knob(page, "Mend jobs-1").click();
  await row(page, "import:catalogue").filter({ hasText: "jobs-1:318" }).waitFor(PATIENT);
});

it("a process that hangs is named by the line on top, and others get the lock after Let go", async () => {
  const page = await open();
  await knob(page, "Hang web-3").click();
  await page.locator("#verdict[data-level=long]").filter({ hasText: MUG }).waitFor(PATIENT);
  await knob(page, "Let go web-3").click();
  await row(page, MUG)
    .filter({ hasText: /web-[12]:\d+/ })
    .waitFor(PATIENT);
});

it("a deadlock is proven on top and in Blocked, and ends", async () => {
  const page = await open();
  await knob(page, "Make a deadlock").click();
  await page.locator("#verdict[data-level=bad]").filter({ hasText: "Deadlock" }).waitFor(PATIENT);
  await page.keyboard.press("b");
  await page.locator(".deadlock").filter({ hasText: "account:1" }).waitFor(PATIENT);
  await knob(page, "End the deadlock").click();
  await expect.poll(() => page.locator(".deadlock").count(), PATIENT).toBe(0);
  await knob(page, "Make a deadlock").waitFor(PATIENT);
});

it("late answers are chosen for all processes, and a holder is force-released", async () => {
  const page = await open();
  await knob(page, "Answers 500 ms late").click();
  await expect
    .poll(() => knob(page, "Answers 500 ms late").getAttribute("aria-pressed"), PATIENT)
    .toBe("true");
  await knob(page, "No late answers").click();
  await row(page, "import:catalogue").getByRole("link").click();
  await page.getByRole("button", { name: "Force-release …" }).click();
  await page.getByRole("textbox", { name: "Name of the lock" }).fill("import:catalogue");
  await page.getByRole("button", { name: "Force-release", exact: true }).click();
  await page.getByText("The hold you saw was force-released.").waitFor(PATIENT);
});

it("the keyboard reaches each knob, a knob says what it shows, and all fits a narrow window", async () => {
  const page = await open({ viewport: { width: 390, height: 760 } });
  expect(await fitsWidth(page)).toBe(true);
  await page.locator("#demo summary").focus();
  const count = await page.locator("#demo button").count();
  const reached: string[] = [];
  for (let i = 0; i < count; i++) {
    await page.keyboard.press("Tab");
    reached.push(
      await page.evaluate(
        () => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "",
      ),
    );
  }
  expect(count).toBe(6 * 4 + 5);
  expect(new Set(reached).size).toBe(count);
  expect(reached).toEqual(
    expect.arrayContaining(["Crash web-1", "Hang mailer-1", "No late answers", "Make a deadlock"]),
  );
  await knob(page, "Crash jobs-2").focus();
  await page.locator("#demo .note").filter({ hasText: "The process dies" }).waitFor(PATIENT);
  await page.keyboard.press("Enter");
  await expect.poll(() => stateOf(page, "jobs-2").innerText(), PATIENT).toBe("dead");
  // The focus stays where it was.
  await until(
    async () =>
      (await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))) ===
      "Start again jobs-2",
  );
});

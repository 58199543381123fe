import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { OwnServer } from "../support/own-server.ts";
import { servePage } from "../support/served-page.ts";
import { toldCall } from "../support/told-call.ts";
import { Chromium, fitsWidth } from "./browser.ts";
import { type Scene, setScene, tellCalls, tokenOf } from "./scene.ts";

const own = new OwnServer();
const browser = new Chromium();
const S = 1_000;
const BILLING = ["billing-7c9f", 1] as const;
/** A busy machine lets a browser wait. */
const PATIENT = { timeout: 30_000 };

async function serve(scene: Partial<Scene> = {}): Promise<string> {
  await own.admin.flushall();
  const { redis } = await own.parties.join({ url: own.url });
  const served = await servePage(redis);
  onTestFinished(() => served.stop());
  const waiters: Scene["waiters"] = [
    ["web-1", 2041, 38 * S],
    ["web-3", 1877, 21 * S],
  ];
  await setScene(own.admin, [
    {
      name: "order:42",
      by: BILLING,
      label: "nightly invoices",
      held: 41 * S,
      left: 500 * S,
      waiters,
      ...scene,
    },
  ]);
  return `${served.url}/#/lock/lock/order%3A42`;
}

const texts = async (page: Page): Promise<string[]> =>
  (await page.locator(".rows li").allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " "));

/** Of each row, what its bars cover of the track, from 0 (left) to 1 (now): of the wait, and of the hold. */
const bars = (page: Page) =>
  page.locator(".rows .track").evaluateAll((all) =>
    all.map((track) => {
      const { left, width } = track.getBoundingClientRect();
      return [".waited", ".held"].map((which) => {
        const bar = track.querySelector<HTMLElement>(which);
        if (!bar || bar.hidden) return null;
        const at = bar.getBoundingClientRect();
        return [at.left, at.right].map((x) => Math.round(((x - left) / width) * 100) / 100);
      });
    }),
  );

it.each([1_280, 390])(
  "the holder, the waiters and the calls that ended are in the order of time, %i px wide",
  async (width) => {
    const url = await serve();
    await tellCalls(
      own.admin,
      ["web-2", 7],
      [
        toldCall("order:42", "released", { ago: 60 * S, heldFor: 30 * S, waitedFor: 45 * S }),
        toldCall("order:42", "lost", { ago: 150 * S, heldFor: 20 * S, waitedFor: 0 }),
        toldCall("order:42", "giveup", {
          ago: 100 * S,
          waitedFor: 5 * S,
          site: "refund (src/refunds.ts:7:3)",
        }),
      ],
    );
    // Its process has died: it holds nothing any more, and has not told that.
    await tellCalls(
      own.admin,
      ["web-9", 9],
      [toldCall("order:42", "holds", { ago: 50 * S, heldFor: 6 * S, waitedFor: 0, token: 17 })],
    );
    const page = await browser.open(url, { viewport: { width, height: 900 } });
    await expect.poll(async () => (await texts(page)).length, PATIENT).toBe(7);
    const expected = [
      /^now nightly invoices billing-7c9f:1 has it for 4\d s$/,
      /^next web-1:2041 waits for (3|4)\d s$/,
      /^2 web-3:1877 waits for 2\d s$/,
      /^5\d s ago web-9:9 had it for 6.0 s or longer: its end is not reported yet$/,
      /^1 min \d\d s ago web-2:7 released it after 30 s \(waited 45 s\)$/,
      /^1 min 4\d s ago web-2:7 gave up after 5.0 s timeout · refund \(src\/refunds\.ts:7:3\)$/,
      /^2 min 3\d s ago web-2:7 lost it, and noticed that after 20 s expired$/,
    ];
    for (const [i, text] of (await texts(page)).entries()) expect(text).toMatch(expected[i] ?? /^$/);
    expect(await page.locator(".axis span").allInnerTexts()).toEqual(["3 min ago", "2 min", "1 min"]);
    expect(await fitsWidth(page)).toBe(true);
    // No time covers the name next to it.
    const isCut = (all: Element[]) => all.map((one) => one.scrollWidth > one.clientWidth);
    expect(new Set(await page.locator(".rows .when").evaluateAll(isCut))).toEqual(new Set([false]));
    // The bars end at the right edge for what lasts, and otherwise where it ended.
    const [now, next, , died, released, , lost] = await bars(page);
    for (const bar of [now?.[1], next?.[0]]) expect(bar?.[1]).toBe(1);
    expect(now?.[0]).toBeNull();
    expect(next?.[1]).toBeNull();
    const [[waitFrom = 0, waitTo = 0] = [], [from = 0, to = 0] = []] = (released ?? []) as (
      | number[]
      | undefined
    )[];
    // It waited for half as long again as it then had the lock.
    expect(waitTo).toBeCloseTo(from, 1);
    expect((waitTo - waitFrom) / (to - from)).toBeCloseTo(1.5, 0);
    expect(to).toBeLessThan(died?.[1]?.[0] ?? 0);
    expect(lost?.[1]?.[1]).toBeLessThan(waitFrom);
  },
);

it("a holder whose process lives and whose work does not end is told apart, with its last renewal and its line", async () => {
  const url = await serve({ left: 23 * S });
  const token = await tokenOf(own.admin, "order:42");
  const site = "InvoiceJob.run (src/invoices.ts:42:11)";
  const page = await browser.open(url);
  await page.getByText("has it for").waitFor();
  // Whether its lease is renewed is not known yet.
  expect(await page.locator(".stuck").isVisible()).toBe(false);
  await tellCalls(own.admin, BILLING, [
    toldCall("order:42", "holds", { ago: 0, heldFor: 41 * S, token, lease: 30 * S, site }),
  ]);
  await page
    .getByText(
      /^Renewed \d+(\.\d)? s ago: its process lives, but its work has not ended for [45]\d s\. Restart that process, or force-release the lock\.$/,
    )
    .waitFor();
  const card = (await page.locator(".card").innerText()).replaceAll(/\s+/g, " ");
  expect(card).toMatch(/Last renewed \d+(\.\d)? s ago /);
  expect(card).toContain(`Called at ${site}`);
  expect(await page.locator("#facts").innerText()).toMatch(
    /^order:42 for [34]\d s, held by nightly invoices for [45]\d s, renewed \d+(\.\d)? s ago\.$/,
  );
  // It is not renewed any more.
  await own.admin.pexpire("holdfast:{order:42}", 14 * S);
  await page
    .getByText(/^Its lease was not renewed for 1\d s: its process may hang, or may not reach Redis\.$/)
    .waitFor();
  expect(await page.locator(".stuck").isVisible()).toBe(false);
  await own.admin.pexpire("holdfast:{order:42}", 29 * S);
  await expect.poll(() => page.locator(".stuck").isVisible(), PATIENT).toBe(true);
  // Where no process waits for long, a long hold is no trouble.
  await own.admin.del("holdfast:{order:42}:queue");
  await expect.poll(() => page.locator(".stuck").isVisible(), PATIENT).toBe(false);
  expect(await page.getByText("Last renewed").isVisible()).toBe(true);
});

it("a holder that was renewed more than half of its lease ago is not said to live", async () => {
  const url = await serve({ left: 10 * S });
  const token = await tokenOf(own.admin, "order:42");
  await tellCalls(own.admin, BILLING, [
    toldCall("order:42", "holds", { ago: 18 * S, heldFor: 23 * S, token, lease: 30 * S }),
  ]);
  const page = await browser.open(url);
  await page.getByText("Last renewed").waitFor();
  expect(await page.locator(".stuck").isVisible()).toBe(false);
});

it("calls of one process that gave up after the same time have a row each", async () => {
  const url = await serve();
  const gaveUp = [150, 120, 90].map((ago) =>
    toldCall("order:42", "giveup", { ago: ago * S, waitedFor: 5 * S }),
  );
  await tellCalls(own.admin, ["web-2", 7], gaveUp);
  const page = await browser.open(url);
  await page.getByText("gave up after").first().waitFor();
  expect(await texts(page)).toHaveLength(6);
});

it("of many that wait the first ones are shown, and all of them on request, by the keyboard", async () => {
  const waiters = Array.from({ length: 60 }, (_, i) => [`web-${i}`, 1, (90 - i) * S] as const);
  const url = await serve({ waiters });
  await tellCalls(own.admin, ["web-2", 7], [toldCall("order:42", "released", { ago: 60 * S })]);
  const page = await browser.open(url);
  const all = page.getByRole("button", { name: "Show 48 more that hold it or wait" });
  await all.focus();
  const shown = await texts(page);
  expect(shown).toHaveLength(14);
  expect(shown[12]).toMatch(/^12 web-11:1 /);
  expect(shown[13]).toMatch(/ ago web-2:7 released it/);
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await texts(page)).length, PATIENT).toBe(62);
  expect(await all.isVisible()).toBe(false);
});

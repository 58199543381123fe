import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";
import { Chromium } from "./browser.ts";

// npm run demo -- --ui: the shop that stays open, in a browser.

const own = new OwnServer();
const browser = new Chromium();
const root = fileURLToPath(new URL("../..", import.meta.url));

/** Starts the demo on the test's Redis. */
function startDemo(...flags: string[]): { demo: ChildProcess; printed: () => string } {
  const demo = spawn(process.execPath, ["--import", "tsx", "demo/index.ts", "--ui", ...flags], {
    cwd: root,
    env: { ...process.env, REDIS_URL: own.url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void demo.kill("SIGKILL"));
  let text = "";
  for (const stream of [demo.stdout, demo.stderr])
    stream.on("data", (piece) => {
      text += piece;
    });
  return { demo, printed: () => text };
}

it("shows the shop live, until Ctrl-C; no piece is sold twice, and nothing is left in Redis", async () => {
  await own.admin.flushall();
  await own.admin.set("theirs", "x");
  const { demo, printed } = startDemo();
  await until(() => /http:\S+/.test(printed()), { timeout: 90_000, what: "the page's address" });
  const [url = ""] = /http:\S+/.exec(printed()) ?? [];
  const page = await browser.open(url);
  await page.getByRole("main").getByRole("link", { name: "product:blue-mug" }).click();
  await page.getByRole("heading", { name: "product:blue-mug" }).waitFor();
  await page
    .getByText(/^order \d+$/)
    .first()
    .waitFor();
  await page.getByRole("button", { name: "Force-release …" }).waitFor();
  await page.keyboard.press("w");
  await page.getByText("Reported by 4 processes").waitFor({ timeout: 20_000 });
  await page.close();
  const ended = once(demo, "exit");
  demo.kill("SIGINT");
  expect([await ended, printed()]).toEqual([
    [0, null],
    expect.stringMatching(/\d+ pieces were sold, and none of them twice/),
  ]);
  expect(await own.admin.keys("*")).toEqual(["theirs"]);
}, 120_000);

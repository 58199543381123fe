import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";

/**
 * A browser for the tests of one file. What a page complains about fails the test: an error, a
 * violation of its policy, another host.
 */
export class Chromium {
  #browser: Browser | undefined;
  readonly #complaints: string[] = [];
  /** What a test provokes on purpose. */
  #expected: RegExp | null = null;

  constructor() {
    beforeAll(async () => {
      const executablePath = process.env.CHROMIUM;
      if (!executablePath) throw new Error("CHROMIUM names no browser: use npm run test:page");
      // As root, which is what a container is, there is no sandbox. Grey edges of letters make a
      // picture half as large. Names of other sites lead to this machine, where tests serve them.
      const names = "--host-resolver-rules=MAP *.example 127.0.0.1";
      const args = ["--no-sandbox", "--disable-lcd-text", names];
      this.#browser = await chromium.launch({ executablePath, args });
    });
    afterEach(async () => {
      await Promise.all(this.#browser?.contexts().map((context) => context.close()) ?? []);
      const unexpected = this.#complaints.splice(0).filter((one) => !this.#expected?.test(one));
      this.#expected = null;
      expect(unexpected).toEqual([]);
    });
    afterAll(() => this.#browser?.close());
  }

  expect(complaints: RegExp): void {
    this.#expected = complaints;
  }

  /** A window of its own. */
  async open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
    if (!this.#browser) throw new Error("the browser has not been started");
    const page = await this.#browser.newPage({ viewport: { width: 1_100, height: 760 }, ...options });
    const { host } = new URL(url);
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.#complaints.push(message.text());
    });
    page.on("pageerror", (error) => this.#complaints.push(String(error)));
    page.on("dialog", (dialog) => {
      this.#complaints.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      if (new URL(request.url()).host !== host) this.#complaints.push(`a request: ${request.url()}`);
    });
    await page.goto(url);
    return page;
  }
}

/** Does the page fit into the width of its window? */
export const fitsWidth = (page: Page): Promise<boolean> =>
  page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);

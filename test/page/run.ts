/**
 * npm run test:page [-- --pictures | arguments of vitest]: the page in a real Chromium. It takes
 * the browser that CHROMIUM names, or one from the PATH; else it installs Debian's. `--pictures`
 * takes those of the docs.
 */
import { spawnSync } from "node:child_process";
import { findCommand } from "../../tools/redis/command.ts";
import { installPackages, whyNotInstall } from "../../tools/redis/install.ts";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

async function findBrowser(): Promise<string | null> {
  const found = process.env.CHROMIUM || findCommand(NAMES);
  if (found) return found;
  const obstacle = whyNotInstall();
  if (obstacle !== null) {
    process.stdout.write(
      `skipped: the page has no browser to be tested in, and none is installed: ${obstacle}\n`,
    );
    return null;
  }
  await installPackages(["chromium", "fonts-liberation"], (line) => process.stderr.write(`${line}\n`));
  return findCommand(NAMES) ?? findCommand(NAMES, "/usr/bin");
}

const browser = await findBrowser();
if (browser !== null) {
  const given = process.argv.slice(2);
  const isPictures = given.includes("--pictures");
  const rest = given.filter((argument) => argument !== "--pictures");
  const pictures = "test/page/pictures.test.ts";
  const what = isPictures ? [pictures] : ["--exclude", pictures, ...rest];
  const env = { ...process.env, CHROMIUM: browser };
  const { status } = spawnSync("npx", ["vitest", "run", "--project", "page", ...what], {
    stdio: "inherit",
    env,
  });
  process.exitCode = status ?? 1;
}

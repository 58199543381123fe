// npm run test:elsewhere -- container: runs `npm test` on a Redis in a container, or prints one
// line that says why that is impossible. Arguments are passed on to vitest.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { whyNoContainer } from "../../redis/container.ts";

const obstacle = await whyNoContainer();
if (obstacle === null) {
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  const vitest = fileURLToPath(new URL("../../../node_modules/vitest/vitest.mjs", import.meta.url));
  const tests = spawn(process.execPath, [vitest, "run", "--project", "default*", ...process.argv.slice(2)], {
    cwd: root,
    env: { ...process.env, TEST_REDIS: "container" },
    stdio: "inherit",
  });
  const [code] = await once(tests, "exit");
  process.exitCode = code ?? 1;
} else {
  console.log(`skipped: the tests on a Redis in a container (${obstacle})`);
}

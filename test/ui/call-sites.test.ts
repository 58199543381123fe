import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, it, onTestFinished } from "vitest";
import { createTestLocks, type TestLocks } from "../../src/tools/testing/index.ts";
import { CallSites, siteIn } from "../../src/tools/ui/call-sites.ts";

function watched() {
  const locks = createTestLocks();
  const sites = new CallSites(locks.id);
  const calls: number[] = [];
  locks.on("acquire", ({ call }) => void calls.push(call));
  onTestFinished(async () => {
    sites.close();
    await locks.close({ grace: 0 });
  });
  return { locks, sites, calls, all: () => calls.map((call) => siteIn(sites.of(call))) };
}

/** The code of an application, from whose lines each kind of call is made. */
const application = {
  lock: (locks: TestLocks) => locks.lock("a").lock(),
  inBlock: (locks: TestLocks) => locks.lock("b").withLock(() => {}),
  permit: (locks: TestLocks) => locks.semaphore("c", { permits: 2 }).acquire(),
  several: (locks: TestLocks) => locks.multiLock(["d", "e"]).lock(),
  reading: (locks: TestLocks) => locks.readWriteLock("f").read.lock(),
  async later(locks: TestLocks) {
    await null;
    return locks.fairLock("g").tryLock();
  },
};

it.each(Object.entries(application))(
  "%s: the line of the application, relative to where it works",
  async (name, call) => {
    const { locks, all } = watched();
    await call(locks);
    await expect.poll(() => all().length).toBeGreaterThan(0);
    for (const site of all())
      expect(site).toMatch(
        new RegExp(
          `^(Object|application|Module)?\\.?${name}.* \\(test/ui/call-sites\\.test\\.ts:\\d+:\\d+\\)$`,
        ),
      );
  },
);

it("calls of other clients, and those that have ended, are not kept", async () => {
  const { locks, sites, calls, all } = watched();
  const other = createTestLocks();
  onTestFinished(() => other.close({ grace: 0 }));
  const told: number[] = [];
  other.on("acquire", ({ call }) => void told.push(call));
  // The numbers of both clients begin with the same.
  await other.lock("a").lock();
  expect(told.map((call) => sites.of(call))).toEqual([null]);
  await locks.lock("a").lock();
  expect(all()).toEqual([expect.any(String)]);
  for (const call of calls) sites.ended(call);
  expect(all()).toEqual([null]);
  await locks.lock("b").lock();
  sites.close();
  await locks.lock("c").lock();
  expect(all()).toEqual([null, null, null]);
});

it("a stack without a line of the application, or whose text throws, has none", () => {
  expect(siteIn(null)).toBeNull();
  expect(siteIn({ stack: "Error\n    at node:internal/process/task_queues:95:5" })).toBeNull();
  const throwing = {
    get stack() {
      throw new Error("prepareStackTrace");
    },
  };
  expect(siteIn(throwing)).toBeNull();
  const stack = (...frames: string[]) => ({
    stack: ["Error", ...frames.map((one) => `    at ${one}`)].join("\n"),
  });
  const framework = "run (/srv/app/node_modules/framework/index.js:1:2)";
  expect(siteIn(stack(framework, "async pay (/srv/app/pay.js:3:4)"))).toBe("pay (/srv/app/pay.js:3:4)");
  expect(siteIn(stack(framework))).toBe(framework);
});

it("a bundle that is a CommonJS module can be loaded, and has no lines", async () => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("../../src/tools/ui/call-sites.ts", import.meta.url))],
    ...{ bundle: true, write: false, platform: "node", format: "cjs", logLevel: "silent" },
  });
  const bundle = { exports: {} as { siteIn: typeof siteIn } };
  const load = new Function("module", "require", outputFiles[0]?.text ?? "");
  load(bundle, createRequire(import.meta.url));
  expect(bundle.exports.siteIn({ stack: "Error\n    at pay (/srv/app/pay.js:3:4)" })).toBeNull();
});

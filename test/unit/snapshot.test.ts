import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { expect, it } from "vitest";

// A client is part of a snapshot of the heap (`node --build-snapshot`), and several processes are
// started from it.

const run = promisify(execFile);

/**
 * Makes a client, whose connection says what is sent, and tries to take a lock: what it draws ahead
 * for later holds is drawn by then. Each process that starts from it tries to take another one.
 */
const program = `
import { startupSnapshot } from "node:v8";
import { createLockClient } from ${JSON.stringify(fileURLToPath(new URL("../../src/index.ts", import.meta.url)))};
const redis = {
  status: "ready",
  options: {},
  on() {},
  off() {},
  disconnect() {},
  duplicate: () => redis,
  eval: () => new Promise(() => {}),
  evalsha() {},
  sendCommand() {},
  listenerCount: () => 1,
  callBuffer: () => new Promise(() => {}),
};
const locks = createLockClient(redis);
locks.lock("a").tryLock().catch(() => {});
startupSnapshot.setDeserializeMainFunction(() => {
  redis.callBuffer = (name, sha, count, ...rest) => {
    console.log(rest[count]);
    process.exit();
  };
  void locks.lock("b").tryLock();
});
`;

/** 22.23.3 is ended by SIGABRT or SIGTRAP while it writes the snapshot. */
const mayCrash = process.versions.node.startsWith("22.");

it("two processes started from one snapshot never have the same hold", async ({ skip }) => {
  const dir = await mkdtemp(join(tmpdir(), "holdfast-snapshot-"));
  try {
    await writeFile(join(dir, "entry.mjs"), program);
    const bundle = await rolldown({ input: join(dir, "entry.mjs"), platform: "node", logLevel: "silent" });
    await bundle.write({ file: join(dir, "entry.cjs"), format: "cjs" });
    const blob = ["--snapshot-blob", join(dir, "blob")];
    const build = run(process.execPath, [...blob, "--build-snapshot", join(dir, "entry.cjs")]);
    const isMade = await build.then(
      () => true,
      (error: { signal?: string }) => {
        if (!mayCrash || !error.signal) throw error;
        return false;
      },
    );
    skip(!isMade, "this Node.js crashes when it makes the snapshot");
    const start = async (): Promise<string> => (await run(process.execPath, blob)).stdout.trim();
    const [one, other] = await Promise.all([start(), start()]);
    // The same client, and its second hold; only the random bits differ.
    expect(one).toMatch(/^.+:\d+:[0-9a-f]{16}:00000002[0-9a-z]{13}$/);
    expect(other.slice(0, -13)).toBe(one.slice(0, -13));
    expect(other).not.toBe(one);
  } finally {
    await rm(dir, { recursive: true });
  }
}, 60_000);

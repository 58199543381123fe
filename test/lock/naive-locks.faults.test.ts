import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { spinLock } from "../../src/spin.ts";
import { plain } from "../../tools/redis/article-spin-lock.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// The two mistakes that articles about locks warn of, made by real processes and in real
// interleavings, beside what does it right.

const parties = new Parties();
afterAll(parties.close);

const root = fileURLToPath(new URL("../..", import.meta.url));
/** ms, of the locks that must run out here. */
const LEASE = 500;
const article = plain(10);

/** A process that takes a lock by this command, and is killed before it does anything else. */
async function dieBehind(command: string, ...args: (string | number)[]): Promise<void> {
  const code = `
    const { Redis } = require("ioredis");
    new Redis(${JSON.stringify(testUrl())}).call(${[command, ...args].map((one) => JSON.stringify(String(one))).join()})
      .then((answer) => console.log("took", answer));`;
  const child = spawn(process.execPath, ["-e", code], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [said] = await once(child.stdout, "data");
  expect(String(said)).toMatch(/^took (1|OK)\n$/);
  child.kill("SIGKILL"); // EXPIRE would have been the next command
  await once(child, "exit");
}

it("SETNX and EXPIRE: a process that is killed between them leaves a lock that never ends", async () => {
  const { redis, locks } = await parties.join();
  const name = freshName();
  await dieBehind("SETNX", name, "owner");
  expect(await redis.pttl(name)).toBe(-1);
  onTestFinished(async () => void (await redis.unlink(name)));
  expect(await article.take(redis, name, "next", LEASE)).toBe(false);
  expect(await spinLock(locks, name).tryLock()).toBeNull();
});

it("SET NX PX: the lock of a killed process ends with its lease", async () => {
  const { redis, locks } = await parties.join();
  const name = freshName();
  await dieBehind("SET", name, "owner", "NX", "PX", LEASE);
  const lease = await spinLock(locks, name).lock({ wait: 30_000 });
  expect(lease.held).toBe(true);
  await lease.unlock();
  expect(await redis.exists(name)).toBe(0);
});

it("GET and DEL: a late release deletes the lock of the next holder, and two hold it at once", async () => {
  const { redis } = await parties.join();
  const name = freshName();
  onTestFinished(async () => void (await redis.unlink(name)));
  expect(await article.take(redis, name, "first", 60_000)).toBe(true);
  expect(await redis.get(name)).toBe("first"); // it is mine …
  await redis.pexpire(name, 1); // the end of the lease, at the worst moment
  await until(() => article.take(redis, name, "second", 60_000)); // … and is not any more
  expect(await redis.del(name)).toBe(1);
  expect(await article.take(redis, name, "third", 60_000)).toBe(true); // beside the second one
});

it("compare and delete in one script: a late release deletes nothing", async () => {
  const { redis } = await parties.join();
  const name = freshName();
  onTestFinished(async () => void (await redis.unlink(name)));
  expect(await article.take(redis, name, "first", 1)).toBe(true);
  await until(() => article.take(redis, name, "second", 60_000));
  expect(await article.drop(redis, name, "first")).toBe(0);
  expect(await article.take(redis, name, "third", 60_000)).toBe(false);
});

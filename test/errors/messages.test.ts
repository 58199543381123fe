import { Redis } from "ioredis";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { createLockClient, type LockUnavailableError } from "../../src/index.ts";
import { duration } from "../../src/util/duration.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { until } from "../support/until.ts";
import { faultsOf } from "./house-form.ts";

// What messages say to a stranger: which lock, which process has it, what to do.

const parties = new Parties();
afterAll(parties.close);

it("an error reports a lock that this process holds, asked for without waiting", async () => {
  const { locks } = await parties.join();
  const name = freshName();
  await using _ = await locks.lock(name).lock();
  const { message } = (await failure(locks.lock(name).lock({ wait: 0 }))) as Error;
  expect(message).toBe(
    `Lock '${name}' is already held by this process (pid ${process.pid}), and \`wait\` is 0.`,
  );
});

it("an error reports where a silent Redis is and for how long it was silent, without the name of a script", async () => {
  const server = await launchServer();
  onTestFinished(() => server.stop());
  const { port } = server;
  const [redis, other] = [new Redis(port, "127.0.0.1"), new Redis(port, "127.0.0.1")];
  const locks = createLockClient(redis);
  onTestFinished(async () => {
    await locks.close({ grace: 0 });
    redis.disconnect();
    other.disconnect();
  });
  await redis.ping();
  await other.client("PAUSE", 60_000, "ALL");
  const error = (await failure(locks.lock("order:42").lock({ wait: 10_000 }))) as LockUnavailableError;
  // The time of the command and that of the call's first answer are over at the same moment.
  const where = `Redis at 127\\.0\\.0\\.1:${port} (did not answer within 5 s|has not answered)`;
  expect(error.message).toMatch(new RegExp(`^Lock 'order:42' is unavailable: ${where}; it is slow .*\\.$`));
  if (error.message.includes("within"))
    expect(error.cause).toMatchObject({ script: "handoff/first-acquire" });
});

it.each([
  [0.4, "0 ms"],
  [999.6, "1 s"],
  [500, "500 ms"],
  [1_500, "1.5 s"],
  [5_000, "5 s"],
  [12_345, "12.3 s"],
  [3_600_000, "3600 s"],
])("messages show %s ms as %s", (ms, shown) => expect(duration(ms)).toBe(shown));

it("a process that waits for itself, or is late for others, gets a warning of one sentence", async () => {
  const seen: (Error & { code?: string })[] = [];
  const watch = (warning: Error & { code?: string }) => seen.push(warning);
  process.on("warning", watch);
  onTestFinished(() => void process.off("warning", watch));
  const { locks } = await parties.join({ client: { label: "charge" } });
  const lock = locks.lock(freshName());
  await lock.withLock(() =>
    locks.outside(async () => {
      const waiting = new AbortController();
      // It is warned of after two leases of the caller that waits.
      const waiter = lock.lock({ signal: waiting.signal, lease: 100 });
      await until(() => seen.some(({ code }) => code === "LOCK_SELF_WAIT"), { what: "a warning" });
      waiting.abort();
      await failure(waiter);
    }),
  );
  const [warning] = seen.filter(({ code }) => code === "LOCK_SELF_WAIT");
  expect(warning?.message).toMatch(
    new RegExp(
      `^A caller has waited \\S+ m?s for lock '${lock.name}', which this process \\(pid ${process.pid}\\) holds: `,
    ),
  );
  for (const { message } of seen) expect(faultsOf(message, null)).toEqual([]);
});

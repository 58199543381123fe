// Nothing but what a user's test file has: run by a real Jest, which loads CommonJS.
const { createLockClient, LockLostError, LockTimeoutError } = require("holdfast");
const { createTestLocks } = require("holdfast/testing");
const { Redis } = require("ioredis");

describe("with a Redis", () => {
  let redis;
  let locks;

  beforeAll(() => {
    redis = new Redis(process.env.REDIS_URL);
    locks = createLockClient(redis);
  });

  afterAll(async () => {
    await locks.close();
    await redis.quit();
  });

  test("a CommonJS test can require the package", async () => {
    const lock = locks.lock(`recipe:${process.pid}`);
    await lock.withLock(async (lease) => {
      expect(lease.token).toBeGreaterThan(0);
      await expect(locks.outside(() => lock.lock({ wait: 50 }))).rejects.toThrow(LockTimeoutError);
    });
  });
});

describe.each([["real"], ["fake"]])("without one, timers %s", (timers) => {
  let locks;

  beforeEach(() => {
    if (timers === "fake") jest.useFakeTimers();
    locks = createTestLocks();
  });

  afterEach(async () => {
    await locks.close({ grace: 0 });
    jest.useRealTimers();
  });

  test("busy, advance: a caller has waited", async () => {
    const other = await locks.test.busy("order:42");
    const late = expect(locks.lock("order:42").lock({ wait: 5_000 })).rejects.toThrow(LockTimeoutError);
    await locks.test.advance(5_000);
    await late;
    await other.undo();
    expect(await locks.lock("order:42").withLock(() => "mine")).toBe("mine");
  });

  test.each([["lose"], ["expire"]])("%s: a body learns of it", async (how) => {
    const body = ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const held = expect(locks.lock("order:42").withLock(body)).rejects.toThrow(LockLostError);
    await locks.test[how]("order:42");
    await held;
  });

  test("permits, and a leader", async () => {
    const slots = locks.semaphore("smtp", { permits: 2 });
    expect(await Promise.all([1, 2, 3].map((n) => slots.withPermits(() => n)))).toEqual([1, 2, 3]);
    const term = await locks.election("scheduler").campaign();
    await locks.test.lose("scheduler");
    expect(term.signal.aborted).toBe(true);
  });
});

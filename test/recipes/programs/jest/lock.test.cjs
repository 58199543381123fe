const { createLockClient, LockTimeoutError } = require("holdfast");
const { Redis } = require("ioredis");

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

import { Bench } from "tinybench";
import { createLockClient } from "../../src/index.ts";
import { decodeMessage } from "../../src/redis/messages.ts";
import { instantRedis } from "./instant-redis.ts";

const GRANT =
  "grant 1790000000000000 1790000000000000 3000 0 holdfast:client:host:4711:0123456789abcdef:000000160123456789abc holdfast:{order:42}";

/** What the client itself costs, without a Redis: µs of the median, by what was done. */
export async function clientAlone(): Promise<Map<string, number>> {
  const locks = createLockClient(instantRedis());
  const lock = locks.lock("order:42");
  const fairLock = locks.fairLock("order:42");
  const lingering = locks.lock("order:43", { linger: 1_000 });
  /** The second parks behind the first, and gets the lock when that one unlocks. */
  const parkAndPass = async (): Promise<void> => {
    const [first, second] = [lock.lock(), lock.lock()];
    await (await first).unlock();
    await (await second).unlock();
  };
  const bench = new Bench({ time: 1_000, warmupTime: 500 })
    .add("tryLock and unlock", async () => {
      const lease = await lock.tryLock();
      await lease?.unlock();
    })
    .add("tryLock and unlock, with a label", async () => {
      const lease = await lock.tryLock({ label: "nightly invoice" });
      await lease?.unlock();
    })
    .add("withLock", () => lock.withLock(() => {}))
    .add("lingering: tryLock and unlock", async () => {
      const lease = await lingering.tryLock();
      await lease?.unlock();
    })
    .add("lingering: withLock", () => lingering.withLock(() => {}))
    .add("fairLock: tryLock and unlock", async () => {
      const lease = await fairLock.tryLock();
      await lease?.unlock();
    })
    .add("park, wake and pass: two callers", parkAndPass)
    .add("decode a grant", () => void decodeMessage(GRANT));

  await bench.run();
  await locks.close();
  return new Map(
    bench.tasks.map(({ name, result }) => {
      if (result.state !== "completed")
        throw new Error(`${name}: ${result.state}`, "error" in result ? { cause: result.error } : {});
      return [name, result.latency.p50 * 1_000];
    }),
  );
}

import { Redis } from "ioredis";
import { Redisson } from "node-redisson";
import type { Contender } from "./contender.ts";

/** Its watchdog renews 30 s. It opens two connections of its own, one of them for its subscriptions. */
export const openNodeRedisson: Contender["open"] = async (url) => {
  // It takes options, no URL: this one only takes it apart, and never connects.
  const { options } = new Redis(url, { lazyConnect: true });
  const redisson = new Redisson({ redis: { options: { ...options, lazyConnect: false } } });
  await redisson.redis.ping();
  return {
    async acquire(name, { wait, lease }) {
      // The holder of an object may enter again. So each acquisition makes a new object, and
      // callers exclude each other.
      const lock = redisson.getLock(name);
      return (await lock.tryLock(wait, lease ?? true)) ? () => lock.unlock() : null;
    },
    // Its timers outlive this, and reject where nobody listens: end the process next.
    close: () => redisson.quit(),
  };
};

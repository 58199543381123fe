// What has to work on every runtime and behind every bundler: hand-off, loss, watchdog, scopes, time-outs.
import { createLockClient, LockLostError, LockTimeoutError } from "holdfast";
import { Redis } from "ioredis";

const url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
const pairs = [1, 2]
  .map(() => new Redis(url))
  .map((redis) => ({ redis, locks: createLockClient(redis, { leaseTime: 1_000 }) }));
const name = `recipe:portable:${process.pid}`;

function prove(isTrue: boolean, claim: string): void {
  if (!isTrue) throw new Error(`not so: ${claim}`);
}

async function main(): Promise<void> {
  const [one, two] = pairs.map(({ locks }) => locks);
  if (!one || !two) throw new Error("unreachable");
  let inside = 0;
  let most = 0;
  const body = async (): Promise<void> => {
    most = Math.max(most, ++inside);
    await new Promise((resolve) => setTimeout(resolve, 2));
    inside--;
  };
  const calls = [one, two].flatMap((locks) =>
    Array.from({ length: 20 }, () => locks.lock(name).withLock(body)),
  );
  await Promise.all(calls);
  prove(most === 1, "one holder at a time");

  const lease = await one.lock(name).lock();
  const next = two.lock(name).lock();
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  prove(lease.held, "the watchdog renews");
  const began = performance.now();
  await lease.unlock();
  await using handed = await next;
  prove(
    performance.now() - began < 500 && handed.token > lease.token,
    "the unlock hands the lock over, with a larger token",
  );
  const busy = await one
    .lock(name)
    .lock({ wait: 50 })
    .catch((error: unknown) => error);
  prove(busy instanceof LockTimeoutError, "a wait ends in time");
  await handed.unlock();

  const short = await one.lock(name).lock({ lease: 100 });
  await new Promise((resolve) => short.signal.addEventListener("abort", resolve));
  prove(short.signal.reason instanceof LockLostError, "a lost lease is told");

  await one.lock(name).withLock(async (outer) => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await using inner = await one.lock(name).lock({ wait: 0 });
    prove(inner.token === outer.token, "a body enters its lock again");
  });

  for (const { redis, locks } of pairs) {
    await locks.close();
    await redis.quit();
  }
  console.log("all is well");
}

void main(); // no await at the top level, which CommonJS does not have

import { once } from "node:events";
import { createLockClient, type Lease } from "holdfast";
import { connect, figure, ms, prove, sleep, startProcess, word } from "./support.ts";

const [, , role, name = "", bodyTakes = "0"] = process.argv;
const redis = connect();

const stopListening = (): void => {};
const logged: string[] = [];
const log = (error: Error): void => void logged.push(error.message);

if (role === "service") {
  // #region service
  const locks = createLockClient(redis);
  locks.on("error", (error) => log(error)); // among others: the names of locks that close() had to take

  process.once("SIGTERM", async () => {
    stopListening(); // first, take no new requests or jobs
    // waiting callers get ClientClosedError, holders 1 s: longer than a body takes here
    await locks.close({ grace: 1_000 });
    await redis.quit();
    process.disconnect?.(); // nothing keeps the process alive any more
  });
  // #endregion

  process.once("exit", () => {
    const isTaken = Number(bodyTakes) > 1_000;
    // close() names what it had to take
    if (isTaken !== logged.some((line) => line.includes(name))) process.exitCode = 2;
  });
  await locks
    .lock(name)
    .withLock({ lease: 120_000, watchdog: true }, async (lease: Lease) => {
      process.send?.("holds");
      await sleep(Number(bodyTakes), undefined, { signal: lease.signal });
      process.send?.("finished");
    })
    .catch((error: Error & { cause?: Error }) =>
      process.send?.(`${error.name} ${"reason" in error ? error.reason : ""}`),
    );
} else {
  for (const [takes, said] of [
    [400, "finished"],
    [60_000, "LockLostError closed"],
  ] as const) {
    const lock = createLockClient(redis);
    const service = startProcess(import.meta.url, "service", `recipe:${process.pid}:${takes}`, String(takes));
    prove((await word(service)) === "holds", "it holds the lock");
    const waiting = lock.lock(`recipe:${process.pid}:${takes}`).lock({ wait: 180_000 });
    await sleep(200);
    const since = performance.now();
    service.kill("SIGTERM");
    const [ended, lease, [code]] = await Promise.all([word(service), waiting, once(service, "exit")]);
    const time = performance.now() - since;
    prove(ended === said, `a body of ${takes} ms ends with "${said}", not "${ended}"`);
    prove(code === 0, "the process ends by itself");
    figure(`SIGTERM to the end of the process, ${takes} ms of work, 1 s of grace`, ms(time));
    prove(time < 60_000, "nobody waits for a lease to run out");
    await lease.unlock();
    await lock.close();
  }
  await redis.quit();
}

import { createLockClient, isLockLost } from "holdfast";
import { connect, figure, ms, prove, sleep, startProcess, until, word } from "./support.ts";

interface Context {
  getRemainingTimeInMillis(): number;
}

let written = 0;

async function prepare(signal: AbortSignal): Promise<void> {
  process.send?.("prepares");
  const frozenUntil = performance.now() + 300;
  while (performance.now() < frozenUntil && !signal.aborted) await sleep(5);
}

async function write(_: { fence: number }): Promise<void> {
  written++;
}

// #region function
const redis = connect(); // outside of the handler: they live as long as the instance
const locks = createLockClient(redis);

export async function handler(event: { id: string }, context: Context): Promise<{ statusCode: number }> {
  const left = context.getRemainingTimeInMillis();
  // No watchdog: its timers stop while the instance is frozen. No waiting: nothing is subscribed.
  await using lease = await locks.lock(`invoice:${event.id}`).tryLock({ lease: left });
  if (!lease) return { statusCode: 409 };
  await prepare(lease.signal);
  lease.assertHeld(); // after a thaw this is the first line that knows of the lost time
  await write({ fence: lease.token });
  return { statusCode: 200 }; // the lease is released before the answer goes out
}
// #endregion

const context = (left: number): Context => ({ getRemainingTimeInMillis: () => left });

if (process.argv[2] === "instance") {
  try {
    await handler({ id: `frozen:${process.argv[3]}` }, context(1_000));
    process.send?.("written");
  } catch (error) {
    process.send?.(isLockLost(error) && written === 0 ? "lost, nothing written" : String(error));
  }
} else {
  const [one, two] = await Promise.all(
    [1, 2].map(() => handler({ id: String(process.pid) }, context(5_000))),
  );
  prove(
    [one?.statusCode, two?.statusCode].sort().join() === "200,409",
    "one of two invocations gets the lock",
  );
  prove(!(await locks.lock(`invoice:${process.pid}`).isLocked()), "it is released with the answer");
  prove((await redis.pubsub("CHANNELS", "holdfast:*")).length === 0, "nothing was subscribed");

  const instance = startProcess(import.meta.url, "instance", String(process.pid));
  prove((await word(instance)) === "prepares", "it holds the lock");
  const since = performance.now();
  instance.kill("SIGSTOP"); // frozen for longer than its lease
  await until(
    "the lease is over",
    async () => !(await locks.lock(`invoice:frozen:${process.pid}`).isLocked()),
  );
  figure("a frozen instance's lock is free, with a lease of 1 s, after", ms(performance.now() - since));
  instance.kill("SIGCONT");
  const said = await word(instance);
  prove(said === "lost, nothing written", `it stops before its write, and said: ${said}`);
}
await locks.close();
await redis.quit();
process.disconnect?.();

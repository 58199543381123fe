import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { createLockClient } from "holdfast";
import { connect, prove, sleep } from "./support.ts";

const redis = connect(); // a connection and a client for each thread
const locks = createLockClient(redis);

const inside = new Int32Array(isMainThread ? new SharedArrayBuffer(8) : (workerData as SharedArrayBuffer));

async function work(): Promise<void> {
  for (let i = 0; i < 30; i++)
    await locks.lock("recipe:threads").withLock(async () => {
      if (Atomics.add(inside, 0, 1) !== 0) Atomics.add(inside, 1, 1); // another thread is inside, too
      await sleep(1);
      Atomics.sub(inside, 0, 1);
    });
}

if (isMainThread) {
  const threads = [1, 2, 3].map(() => new Worker(new URL(import.meta.url), { workerData: inside.buffer }));
  await Promise.all([work(), ...threads.map((thread) => once(thread, "exit"))]);
  prove(Atomics.load(inside, 1) === 0, "threads exclude each other");

  // A scope ends at its thread: a thread that a body starts is a stranger to the body's lock.
  const isBusy = await locks.lock("recipe:threads").withLock(async () => {
    const thread = new Worker(new URL(import.meta.url), { workerData: inside.buffer, argv: ["try"] });
    const [answer] = await once(thread, "message");
    return answer === "busy";
  });
  prove(isBusy, "a thread that a body starts does not enter its lock");
} else if (process.argv.includes("try")) {
  const lease = await locks.lock("recipe:threads").tryLock();
  parentPort?.postMessage(lease ? "got it" : "busy");
} else await work();

await locks.close();
await redis.quit();

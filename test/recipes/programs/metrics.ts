import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createLockClient, type LockClient } from "holdfast";
import { register } from "holdfast/prometheus";
import { Registry } from "prom-client";
import { connect, prove, until } from "./support.ts";

// #region metrics
/** Serves the metrics of this process to Prometheus, those of its locks among them. */
export function serveMetrics(locks: LockClient, registry: Registry): Server {
  register(locks, registry);
  return createServer(async (_, response) => {
    response.setHeader("content-type", registry.contentType);
    response.end(await registry.metrics());
  });
}
// #endregion

const redis = connect();
const locks = createLockClient(redis);
const server = serveMetrics(locks, new Registry()).listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address() as AddressInfo;

/** The value of a line such as `holdfast_lock_held{lock="order",kind="lock"} 1`; 0 where there is none. */
async function read(metric: string, ...wanted: string[]): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line.startsWith(`holdfast_lock_${metric}{`));
  const found = lines.find((line) => wanted.every((label) => line.includes(label)));
  return Number(found?.split(" ").at(-1) ?? 0);
}

const lock = locks.lock(`order:${process.pid}`);
const other = locks.lock(`order:other:${process.pid}`);
const lease = await lock.lock();
const waiter = lock.lock();
await until("a caller waits", async () => (await read("pending_requests", 'lock="order"')) === 1);
prove((await read("held", 'lock="order"', 'kind="lock"')) === 1, "one lease is held");
prove((await lock.tryLock()) === null, "busy");
await lock.lock({ wait: 50 }).catch(() => {});
await lease.unlock();
await (await waiter).unlock();
const short = await other.lock({ lease: 50 });
await until("the loss is counted", async () => (await read("losses_total", 'reason="expired"')) === 1);
await short.unlock().catch(() => {});
prove((await read("held", 'lock="order"')) === 0, "no lease is held any more");
prove((await read("pending_requests", 'lock="order"')) === 0, "no caller waits any more");
prove((await read("wait_seconds_count", 'outcome="busy"')) === 1, "a busy lock is counted");
prove((await read("timeouts_total", 'lock="order"')) === 1, "a time-out is counted");
prove((await read("losses_total", 'reason="expired"')) === 1, "a loss is counted, once");
prove((await read("wait_seconds_count", 'outcome="acquired"')) === 3, "three calls got a lock");
prove((await read("hold_seconds_count", 'outcome="released"')) === 2, "two holds were released");

server.close();
server.closeAllConnections();
await locks.close();
await redis.quit();

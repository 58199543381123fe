import { createLockClient, type LockClient, type LockEvent } from "holdfast";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { connect, prove, sleep } from "./support.ts";

// #region metrics
/** A label must have few values: `order:42` counts as `order`. */
const templateOf = (name: string): string => name.split(":", 1)[0] ?? name;

export function measure(locks: LockClient, registry: Registry): void {
  const registers = [registry];
  const labelNames = ["lock", "kind"] as const;
  const buckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60];
  const waited = new Histogram({
    name: "lock_wait_seconds",
    help: "From the call to the lock.",
    labelNames,
    buckets,
    registers,
  });
  const held = new Histogram({
    name: "lock_hold_seconds",
    help: "From the lock to its end.",
    labelNames,
    buckets,
    registers,
  });
  const waiting = new Gauge({ name: "lock_waiting", help: "Callers that wait.", labelNames, registers });
  const holding = new Gauge({ name: "lock_held", help: "Leases that are held.", labelNames, registers });
  const giveups = new Counter({
    name: "lock_giveups_total",
    help: "Calls that ended without the lock.",
    labelNames: [...labelNames, "why"],
    registers,
  });
  const losses = new Counter({
    name: "lock_losses_total",
    help: "Leases that were lost.",
    labelNames: [...labelNames, "reason"],
    registers,
  });

  const labels = ({ name, kind }: LockEvent) => ({ lock: templateOf(name), kind });
  const calls = new Map<number, ReturnType<typeof labels>>(); // those that wait
  const leases = new Set<string>();
  const stopWaiting = ({ call }: LockEvent): void => {
    const one = calls.get(call);
    if (one && calls.delete(call)) waiting.dec(one);
  };
  const end = (event: LockEvent & { held: number }): void => {
    if (!leases.delete(`${event.call} ${event.name}`)) return; // a loss that its release has found: told twice
    holding.dec(labels(event));
    held.observe(labels(event), event.held / 1_000);
  };

  locks.on("wait", (event) => {
    if (calls.has(event.call)) return;
    calls.set(event.call, labels(event));
    waiting.inc(labels(event));
  });
  locks.on("acquire", (event) => {
    stopWaiting(event);
    leases.add(`${event.call} ${event.name}`);
    holding.inc(labels(event));
    waited.observe(labels(event), event.waited / 1_000);
  });
  locks.on("giveup", (event) => {
    stopWaiting(event);
    giveups.inc({ ...labels(event), why: event.why });
  });
  locks.on("release", end);
  locks.on("lost", (event) => {
    end(event);
    losses.inc({ ...labels(event), reason: event.error.reason });
  });
}
// #endregion

const redis = connect();
const locks = createLockClient(redis);
const registry = new Registry();
measure(locks, registry);

/** The value of a line such as `lock_held{lock="order",kind="lock"} 1`; 0 where there is none. */
async function read(metric: string, ...wanted: string[]): Promise<number> {
  const lines = (await registry.metrics()).split("\n").filter((line) => line.startsWith(`${metric}{`));
  return Number(
    lines
      .find((line) => wanted.every((label) => line.includes(label)))
      ?.split(" ")
      .at(-1) ?? 0,
  );
}

const lock = locks.lock(`order:${process.pid}`);
const other = locks.lock(`order:other:${process.pid}`);
const lease = await lock.lock();
const waiter = lock.lock();
await sleep(100);
prove((await read("lock_held", 'lock="order"')) === 1, "one lease is held");
prove((await read("lock_waiting", 'lock="order"')) === 1, "one caller waits");
prove((await lock.tryLock()) === null, "busy");
await lock.lock({ wait: 50 }).catch(() => {});
await lease.unlock();
await (await waiter).unlock();
const short = await other.lock({ lease: 50 });
await sleep(200);
await short.unlock().catch(() => {});
prove((await read("lock_held", 'lock="order"')) === 0, "no lease is held any more");
prove((await read("lock_waiting", 'lock="order"')) === 0, "no caller waits any more");
prove((await read("lock_giveups_total", 'why="busy"')) === 1, "a busy lock is counted");
prove((await read("lock_giveups_total", 'why="timeout"')) === 1, "a time-out is counted");
prove((await read("lock_losses_total", 'reason="expired"')) === 1, "a loss is counted, once");
prove((await read("lock_wait_seconds_count", 'lock="order"')) === 3, "three calls got a lock");
prove((await read("lock_hold_seconds_count", 'lock="order"')) === 3, "three holds have ended");

await locks.close();
await redis.quit();

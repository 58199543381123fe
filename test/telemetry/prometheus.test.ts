import { Counter, Registry } from "prom-client";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { register } from "../../src/tools/telemetry/prometheus.ts";
import { failure } from "../contract/observe.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { running } from "../support/result-runs.ts";
import { until } from "../support/until.ts";

// holdfast/prometheus with a real registry of prom-client: the text that a scrape gets.

const parties = new Parties();
afterAll(parties.close);

/** The samples of a metric, by their labels: `lock="order",kind="lock"` → 1. Without buckets. */
async function read(registry: Registry, metric: string): Promise<Record<string, number>> {
  const lines = (await registry.metrics()).split("\n");
  const found = lines.flatMap((line) => {
    const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    return name === metric ? [[labels, Number(value)] as const] : [];
  });
  return Object.fromEntries(found);
}

/** The codes of the warnings that this package gives until the test has ended. */
function collectWarnings(): string[] {
  const codes: string[] = [];
  const listener = (warning: Error & { code?: string }): void => void codes.push(warning.code ?? "");
  process.on("warning", listener);
  onTestFinished(() => void process.off("warning", listener));
  return codes;
}

const ORDER = 'lock="order",kind="lock"';

it("the registry exposes what the locks of a client do, by the templates of their names", async () => {
  const { locks } = await parties.join();
  const registry = new Registry();
  const unregister = register(locks, registry);
  let passes = 0;
  locks.on("acquire", ({ passed }) => {
    passes += Number(passed);
  });
  const name = `order:${freshName()}`;
  const lock = locks.lock(name);
  const first = await lock.lock();
  const second = lock.lock();
  await until(async () => (await read(registry, "holdfast_lock_pending_requests"))[ORDER] === 1);
  expect(await lock.tryLock()).toBeNull();
  expect(await failure(lock.lock({ wait: 20 }))).toMatchObject({ code: "LOCK_TIMEOUT" });
  expect(await read(registry, "holdfast_lock_held")).toEqual({ [ORDER]: 1 });
  const { [ORDER]: age = 0 } = await read(registry, "holdfast_lock_oldest_hold_seconds");
  expect(age).toBeGreaterThan(0.02);
  // It has not ended yet.
  const { [ORDER]: wait = 0 } = await read(registry, "holdfast_lock_oldest_wait_seconds");
  expect(wait).toBeGreaterThan(0.02);
  await first.unlock();
  await (await second).unlock();
  const short = await lock.lock({ lease: 50 });
  await until(() => !short.held && short.signal.aborted);

  expect(await read(registry, "holdfast_lock_held")).toEqual({ [ORDER]: 0 });
  expect(await read(registry, "holdfast_lock_pending_requests")).toEqual({ [ORDER]: 0 });
  expect(await read(registry, "holdfast_lock_oldest_hold_seconds")).toEqual({ [ORDER]: 0 });
  expect(await read(registry, "holdfast_lock_oldest_wait_seconds")).toEqual({ [ORDER]: 0 });
  expect(await read(registry, "holdfast_lock_wait_seconds_count")).toEqual({
    [`${ORDER},outcome="acquired"`]: 3,
    [`${ORDER},outcome="busy"`]: 1,
    [`${ORDER},outcome="timeout"`]: 1,
  });
  expect(await read(registry, "holdfast_lock_hold_seconds_count")).toEqual({
    [`${ORDER},outcome="released"`]: 2,
    [`${ORDER},outcome="lost"`]: 1,
  });
  expect(await read(registry, "holdfast_lock_timeouts_total")).toEqual({ [ORDER]: 1 });
  expect(await read(registry, "holdfast_lock_passes_total")).toEqual({ [ORDER]: passes });
  expect(await read(registry, "holdfast_lock_renew_failures_total")).toEqual({ [ORDER]: 0 });
  // All reasons are there from the beginning: a counter that begins at 1 has not grown to `increase()`.
  expect(await read(registry, "holdfast_lock_losses_total")).toEqual({
    [`${ORDER},reason="expired"`]: 1,
    ...Object.fromEntries(
      ["gone", "taken", "revoked", "closed", "scope", "unknown"].map((one) => [
        `${ORDER},reason="${one}"`,
        0,
      ]),
    ),
  });
  const text = await registry.metrics();
  expect(text).toContain("# TYPE holdfast_lock_wait_seconds histogram");
  expect(text).toContain(`holdfast_lock_wait_seconds_bucket{le="60",${ORDER},outcome="timeout"} 1`);
  expect(text).toContain(`holdfast_lock_wait_seconds_bucket{le="0.01",${ORDER},outcome="timeout"} 0`);
  expect(text).not.toContain(name);

  unregister();
  expect(await registry.metrics()).toBe("\n");
  await lock.withLock(() => {});
  expect(await registry.metrics()).toBe("\n");
});

it("a call that gets the result of another run waits no more, and is no time-out", async () => {
  const { locks } = await parties.join();
  const { locks: others } = await parties.join();
  const registry = new Registry();
  register(locks, registry);
  const name = `pay:${freshName()}`;
  const series = 'lock="pay",kind="remember"';
  const { ran } = await running(others, name);
  const waiting = locks.remember(name, { keep: 60_000 }, () => "mine");
  await until(async () => (await read(registry, "holdfast_lock_pending_requests"))[series] === 1);
  ran("a secret");
  expect((await waiting).value).toBe("a secret");
  await locks.remember(name, { keep: 60_000 }, () => "mine");
  expect(await read(registry, "holdfast_lock_pending_requests")).toEqual({ [series]: 0 });
  expect(await read(registry, "holdfast_lock_timeouts_total")).toEqual({ [series]: 0 });
  const waits = await read(registry, "holdfast_lock_wait_seconds_count");
  expect(waits).toEqual({ [`${series},outcome="served"`]: 2 });
  expect(await registry.metrics()).not.toContain("a secret");
});

it("the exporter counts a lease that a scope ended as lost, and the hold while another one has it", async () => {
  const { locks } = await parties.join();
  locks.on("error", () => {}); // what is left behind
  const registry = new Registry();
  const unregister = register(locks, registry);
  const lock = locks.lock(`order:${freshName()}`);
  const losses = async () => (await read(registry, "holdfast_lock_losses_total"))[`${ORDER},reason="scope"`];
  await lock.withLock(async () => {
    await locks.scope(() => lock.lock());
    expect([await losses(), await read(registry, "holdfast_lock_held")]).toEqual([1, { [ORDER]: 1 }]);
  });
  await locks.scope(() => lock.lock());
  expect([await losses(), await read(registry, "holdfast_lock_held")]).toEqual([2, { [ORDER]: 0 }]);
  expect(await read(registry, "holdfast_lock_hold_seconds_count")).toEqual({
    [`${ORDER},outcome="released"`]: 1,
    [`${ORDER},outcome="lost"`]: 1,
  });
  unregister();
});

it("the exporter counts two clients in one registry, and keeps one's figures when the other leaves", async () => {
  const [{ locks }, { locks: others }] = [await parties.join(), await parties.join()];
  const registry = new Registry();
  const nameOf = () => "all";
  const unregister = [register(locks, registry, { nameOf }), register(others, registry, { nameOf })];
  const label = 'lock="all",kind="lock"';
  const held = await locks.lock(freshName()).lock();
  const other = await others.lock(freshName()).lock();
  expect(await read(registry, "holdfast_lock_held")).toEqual({ [label]: 2 });
  unregister[0]?.();
  unregister[0]?.();
  expect(await read(registry, "holdfast_lock_held")).toEqual({ [label]: 1 });
  await held.unlock();
  expect(await read(registry, "holdfast_lock_held")).toEqual({ [label]: 1 });
  await other.unlock();
  expect(await read(registry, "holdfast_lock_held")).toEqual({ [label]: 0 });
  unregister[1]?.();
  expect(registry.getMetricsAsArray()).toEqual([]);
  register(others, registry)();
});

it("the exporter ignores a lock that was held before registration: no gauge is ever negative", async () => {
  const { locks } = await parties.join();
  const registry = new Registry();
  const lease = await locks.lock(freshName()).lock();
  const waiting = locks.lock(lease.name).lock();
  const unregister = register(locks, registry, { nameOf: () => "early" });
  await lease.unlock();
  await (await waiting).unlock();
  expect(await read(registry, "holdfast_lock_held")).toEqual({ 'lock="early",kind="lock"': 0 });
  expect(await read(registry, "holdfast_lock_pending_requests")).toEqual({});
  unregister();
});

it("the exporter counts a failed renewal, and takes no error event from the process", async () => {
  const { locks, redis } = await parties.join({ client: { leaseTime: 1_000 } });
  const warnings = collectWarnings();
  const registry = new Registry();
  const unregister = register(locks, registry, { nameOf: () => "cut" });
  await locks.lock(freshName()).lock();
  redis.disconnect();
  const failures = () => read(registry, "holdfast_lock_renew_failures_total");
  await until(async () => ((await failures())['lock="cut",kind="lock"'] ?? 0) > 0);
  await until(() => warnings.includes("LOCK_UNAVAILABLE"));
  unregister();
});

it("the exporter keeps names out of labels: numbers are left out, a throwing nameOf and surplus templates count as one", async () => {
  const { locks } = await parties.join();
  const warnings = collectWarnings();
  const registry = new Registry();
  let unregister = register(locks, registry);
  const run = freshName();
  for (const name of [`job-7f3a-${run}`, `42:order:${run}`]) await locks.lock(name).withLock(() => {});
  const templates = Object.keys(await read(registry, "holdfast_lock_held"));
  expect(templates[1]).toBe('lock="*",kind="lock"');
  expect(templates[0]).toMatch(/^lock="job-\*-test",/);
  unregister();
  const nameOf = (name: string): string => {
    if (name.endsWith("0")) throw new Error("no name for this");
    return name;
  };
  unregister = register(locks, registry, { nameOf });
  for (let i = 0; i < 230; i++) await locks.lock(`${run}:${i}`).tryLock();
  expect(Object.keys(await read(registry, "holdfast_lock_held")).length).toBe(201);
  await until(() => warnings.includes("LOCK_TEMPLATES"));
  expect(warnings.filter((code) => code === "LOCK_TEMPLATES").length).toBe(1);
  unregister();
  expect(() => register(locks, registry, { nameOf: "order" as never })).toThrow(TypeError);
  expect(() => register(locks, registry, { nameof: nameOf } as never)).toThrow(/unknown option 'nameof'/);
  expect(() => register(locks, {} as never)).toThrow(/must be a Registry of prom-client/);
  expect(() => register({} as never, registry)).toThrow(/must be a lock client/);
  unregister = register(locks, registry);
  expect(() => register(locks, registry)).toThrow(/this registry has them already/);
  unregister();
  register(locks, registry)();
  const taken = new Registry();
  new Counter({ name: "holdfast_lock_timeouts_total", help: "another one", registers: [taken] });
  expect(() => register(locks, taken)).toThrow("already been registered");
});

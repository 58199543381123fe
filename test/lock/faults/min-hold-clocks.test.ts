import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { clocks } from "../../../src/util/clock.ts";
import type { LocalServer } from "../../../tools/redis/index.ts";
import { freshName, Parties } from "../../support/fixture.ts";
import { launchWithClock, type ServerClock } from "../../support/server-clock.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";

// A lock with `minHold`, and its two clocks: the server's, by which keys end, and the one by which its process measures.

const MIN = 600_000;
const HOUR = 3_600_000;
/** ms that a test may take, on a busy machine. */
const SLOW = 60_000;
/** No renewal, and no end of the lease, comes in between. */
const LONG = { minHold: MIN, lease: 2 * MIN } as const;

const parties = new Parties();
const { mono } = clocks;
let server: LocalServer;
let clock: ServerClock;
let admin: Redis;
let proxy: TcpProxy;
beforeAll(async () => {
  ({ server, clock } = await launchWithClock());
  admin = new Redis(server.url);
  proxy = await TcpProxy.start(server);
});
/** ms by which the clock of this process has been put on. */
let ahead = 0;
beforeEach(() => {
  ahead = 0;
  clocks.mono = { now: () => mono.now() + ahead };
});
afterEach(async () => {
  proxy.delay(0);
  await parties.close();
  clocks.mono = mono;
});
afterAll(async () => {
  await proxy.stop();
  admin.disconnect();
  await server.stop();
});

async function scene() {
  const { locks } = await parties.join({ url: proxy.url, client: { replyTimeout: HOUR } });
  const name = freshName();
  return { locks, name, left: (of = name) => admin.pttl(`holdfast:{${of}}`) };
}

/** So much time passes for this process, and so much for the server. */
function pass(here: number, there = here): void {
  clock.jump(there);
  ahead += here;
}

it("an answer that is read late does not bring its end nearer", async () => {
  const { locks, name, left } = await scene();
  const lease = await locks.lock(name).lock(LONG);
  const other = freshName();
  proxy.delay(300, { direction: "to client" });
  const asked = locks.lock(other).lock({ lease: 2 * MIN });
  await until(async () => (await left(other)) > 0);
  pass(MIN / 2);
  await asked;
  proxy.delay(0);
  await lease.unlock();
  expect(await left()).toBeGreaterThan(MIN / 2 - SLOW);
  expect(await left()).toBeLessThanOrEqual(MIN / 2);
});

it("a server whose clock was set back an hour keeps it no longer, whether the token is of before or behind that", async () => {
  const { locks, name, left } = await scene();
  const lease = await locks.lock(name).lock(LONG);
  const next = freshName();
  try {
    pass(0, -HOUR);
    pass(MIN / 2);
    await lease.unlock();
    expect(await left()).toBeGreaterThan(MIN / 2 - SLOW);
    expect(await left()).toBeLessThanOrEqual(MIN / 2 + MIN / 100);
    await (await locks.lock(next).lock(LONG)).unlock();
    expect(await left(next)).toBeGreaterThan(MIN - SLOW);
    expect(await left(next)).toBeLessThanOrEqual(MIN);
  } finally {
    pass(0, HOUR);
  }
});

it("the server says when it is over, where the clock of the process is the faster one", async () => {
  const { locks, name, left } = await scene();
  const lease = await locks.lock(name).lock({ ...LONG, minHold: 10 * MIN, lease: 20 * MIN });
  pass(10.05 * MIN, 9.95 * MIN);
  await lease.unlock();
  expect(await left()).toBeGreaterThan(0);
  const second = await locks.lock(freshName()).lock(LONG);
  pass(0.995 * MIN, 1.005 * MIN);
  await second.unlock();
  expect(await left(second.name)).toBe(-2);
});

import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { Semaphore } from "../../src/index.ts";
import { inStep } from "../support/duet.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { turnOf } from "../support/turn.ts";
import { until } from "../support/until.ts";

// The primary is replaced while permits are held and waited for.

staysQuiet();
const parties = new Parties();
let group: SentinelGroup;

beforeAll(async () => {
  group = await SentinelGroup.launch();
});
afterEach(() => parties.close());
afterAll(() => group.stop());

it("the holders keep their permits, and a caller that waits for several has them when enough are given back", async ({
  annotate,
}) => {
  const name = freshName();
  const [mine, theirs] = (await Promise.all(
    [1, 2].map(async () => {
      const { locks } = await parties.join({ connect: () => group.connect() });
      locks.on("error", () => {}); // renewals while there is no primary
      return locks.semaphore(name, { permits: 2 });
    }),
  )) as [Semaphore, Semaphore];
  const held = [await mine.acquire(), await mine.acquire()];
  const next = theirs.acquire(2);
  await until(async () => (await mine.inspect()).waiters.length === 1);
  await inStep(await group.adminOf(), `${name}:written`);
  const { took } = await group.failover();
  expect(held.map((lease) => [lease.held, lease.signal.aborted])).toEqual([
    [true, false],
    [true, false],
  ]);
  const seen = await until(async () => await mine.inspect().catch(() => null));
  expect([seen.used, seen.permits]).toEqual([2, 2]);
  for (const lease of held) await lease.release();
  const since = performance.now();
  const lease = await next;
  await annotate(
    `failover ${Math.round(took)} ms; the waiter ${Math.round(performance.now() - since)} ms later`,
  );
  expect(turnOf(lease)).toBeGreaterThan(Math.max(...held.map(turnOf)));
  expect((await theirs.inspect()).used).toBe(2);
  await lease.release();
}, 60_000);

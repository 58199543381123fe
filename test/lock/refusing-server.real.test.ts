// On a real Redis; in virtual time: test/world/directed/{servers,redis-failures}.test.ts.

import { describe, expect, it } from "vitest";
import { freshName } from "../support/fixture.ts";
import { ALLOW_DEBUG } from "../support/server-pauses.ts";
import { Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";
import { heldAndWaitedFor, refusals, refusedWith } from "./refusals.ts";

// Redis answers, and will not do what it is asked. While that lasts nothing is done by halves; then
// everything goes on.

const stage = new Stage({ args: ALLOW_DEBUG });

describe.each(refusals(stage))("$says", ({ says, begin, end }) => {
  it("for less than a lease: renewals fail, and the holder keeps the lock", async () => {
    const { far } = stage;
    const { lease, waiting, errors } = await heldAndWaitedFor(stage, 1_500);
    await begin(far.redis);
    await until(() => errors.length > 0, { what: "a renewal to fail" });
    expect(errors[0]).toMatchObject(refusedWith(says));
    await end(far.redis);
    await until(() => lease.remaining > 1_100, { what: "a renewal" });
    expect([lease.held, lease.signal.aborted]).toEqual([true, false]);
    await lease.unlock();
    await (await waiting).unlock();
  });

  it("for longer than a lease: it expires, and the waiter has the lock afterwards", async ({ annotate }) => {
    const { far, lock } = stage;
    const { lease, waiting } = await heldAndWaitedFor(stage, 1_000);
    await begin(far.redis);
    await until(() => lease.signal.aborted, { what: "the holder's signal" });
    expect(lease.signal.reason).toMatchObject({ reason: "expired" });
    await until(async () => (await lock.left()) < 0, { what: "the key to end" });
    await end(far.redis);
    const [next, waited] = await timed(waiting);
    await annotate(`the next one ${waited} ms later`);
    expect(waited).toBeLessThan(3 * 2_500);
    await expect(lease.unlock()).rejects.toMatchObject({ reason: "expired" });
    await next.unlock();
    await lock.gone();
  });
});

describe("NOSCRIPT", () => {
  it("before any step of a lock's life goes unnoticed", async () => {
    const { near, far, lock } = stage;
    const flush = () => far.redis.script("FLUSH");
    for (const lock of [near, far].map(({ locks }) => locks.lock(freshName()))) {
      await flush();
      const lease = await lock.lock({ lease: 5_000 });
      await flush();
      await lease.extend(10_000);
      await flush();
      expect((await lock.inspect()).token).toBe(lease.token);
      await flush();
      await lease.unlock();
    }
    await flush();
    const held = await far.locks.lock(lock.name).lock();
    await flush();
    const { locks } = await stage.join({ client: { localHandoffs: 0 } });
    const own = [locks.lock(lock.name).lock({ lease: 20_000 }), locks.lock(lock.name).lock()];
    await lock.queued(1);
    await flush();
    await lock.lookedAt();
    await flush(); // before a release, a grant and a claim
    await held.unlock();
    const lease = await own[0];
    const other = (await stage.join()).locks.lock(lock.name).lock();
    await lock.queued(1);
    await flush(); // before a yield
    await lease?.unlock();
    await (await other).unlock();
    await (await own[1])?.unlock();
    await lock.gone();
  });
});

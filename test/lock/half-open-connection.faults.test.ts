import { describe, expect, it } from "vitest";
import { Stage, timed } from "../support/stage.ts";
import { named } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Connections that stay open while nothing passes, and a server that stands still. A holder that
// hears nothing knows by its own clock when its lease is over. Keys end by the server's clock,
// which is this machine's too.

const LEASE = 3_000;
const stage = new Stage({ near: { client: { leaseTime: LEASE } } });

describe("a call on a half-open connection", () => {
  it("fails with a typed error in the time of a first command, and its command has no effect", async ({
    annotate,
  }) => {
    const { near, lock, proxy } = stage;
    await (await near.locks.lock(lock.name).lock()).unlock(); // the server's clock is known
    proxy.freeze("commands");
    const [error, took] = await timed(
      near.locks
        .lock(lock.name)
        .tryLock()
        .catch((reason: unknown) => reason),
    );
    await annotate(`after ${took} ms`);
    expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect(took).toBeLessThan(1_500);
    proxy.thaw();
    await near.redis.ping();
    await lock.gone(); // the try was executed late, and is left
  });
});

describe("a half-open subscriber", () => {
  it("that stops accepting SUBSCRIBE is replaced", async ({ annotate }) => {
    const { far, lock, proxy } = stage;
    const cold = await stage.join({ url: proxy.url, client: { replyTimeout: 400 } });
    const held = await far.locks.lock(lock.name).lock();
    const stalled = proxy.stall(named("subscribe")); // this one connection
    const waiting = cold.locks.lock(lock.name).lock();
    await stalled;
    const [, took] = await timed(
      until(async () => (await lock.waiters()).length === 1 && (await lock.counts()), {
        what: "a place that is heard",
      }),
    );
    await annotate(`heard after ${took} ms`);
    await held.unlock();
    const [lease, waited] = await timed(waiting);
    expect(waited).toBeLessThan(350);
    await lease.unlock();
  });
});

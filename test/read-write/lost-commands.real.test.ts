// On a real Redis; in virtual time: test/world/directed/read-write-joins.test.ts.

import { expect, it } from "vitest";
import { onScript } from "../support/scripts-sent.ts";
import { Stage } from "../support/stage.ts";
import { named } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { openReadWrite } from "./pairs.ts";

// Commands of readers and writers are lost, or are executed again when all is over.

const redis = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };
const stage = new Stage({ near: { redis } });

const open = () => openReadWrite(stage);

it("the end of a writer whose scope reads on is sent again, and other readers enter", async () => {
  const { mine, theirs } = await open();
  await stage.near.locks.scope(async () => {
    const writer = await mine.write.lock();
    const reader = await mine.read.lock();
    const dropped = stage.proxy.dropCommand(named("evalsha"));
    await expect(writer.unlock()).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await dropped;
    const other = await theirs.read.lock({ wait: 10_000 });
    expect([reader.held, other.token]).toEqual([true, writer.token]);
    await other.unlock();
    await reader.unlock();
  });
  await (await theirs.write.lock({ wait: 2_000 })).unlock();
});

it.each(["a reader", "a writer whose scope reads on"])(
  "what had queued %s is executed again after its end: the lock is given back",
  async (which) => {
    const { mine, theirs } = await open();
    const { near, far } = stage;
    const first = await theirs.write.lock();
    // As a Cluster does it: the first reply is lost with its connection, and the command goes out
    // again behind others.
    let again = (): void => {};
    const queueing = new Promise<void>((sent) => {
      const restore = onScript(near.redis, (script, send) => {
        restore();
        const { resolve } = script;
        script.resolve = () => {};
        send();
        again = () => {
          script.resolve = resolve;
          send();
        };
        sent();
      });
    });
    const visit = near.locks.scope(async () => {
      if (which === "a reader") return mine.read.withLock(() => {});
      const writer = await mine.write.lock();
      const reader = await mine.read.lock();
      await writer.unlock();
      await reader.unlock();
    });
    await queueing;
    await until(async () => (await theirs.inspect()).waiters.length === 1);
    await first.unlock();
    await visit;
    again();
    await near.redis.ping();
    await until(async () => (await far.redis.exists(`holdfast:rw:{${mine.name}}`)) === 0, {
      what: "the lock to be free, which nobody has",
    });
  },
);

import { describe, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import { onScript } from "../support/scripts-sent.ts";
import { runs, Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// The network keeps a command back, its connection breaks, ioredis sends it again on a new one, and
// life goes on. Then the old bytes arrive. (Of a first acquire and of a plain release:
// resent-commands.faults.test.ts.)

const REPLY_TIMEOUT = 1_000;
const stage = new Stage({ near: { client: { localHandoffs: 0, replyTimeout: REPLY_TIMEOUT } } });

const held = (): Promise<Lease> => stage.far.locks.lock(stage.lock.name).lock();

describe("a late copy changes nothing", () => {
  it.each([
    ["read", "was unlocked"],
    ["lost too", "was unlocked"],
    ["read", "was yielded"],
    ["read", "was taken away"],
    ["read", "had no caller"],
  ])("of the acquire that queued: its answer is %s, and the hold %s before", async (answer, end) => {
    const { near, far, lock } = stage;
    await stage.warm(near);
    const first = await held();
    // As a Cluster does it: the first reply is lost with its connection, and the command goes out
    // again behind others.
    let again = (): void => {};
    const queueing = new Promise<void>((sent) => {
      const restore = onScript(near.redis, (script, send) => {
        if (!runs("acquire", "queue")([script.name, ...script.args.map(String)])) return send();
        restore();
        sent();
        const { resolve, reject } = script;
        script.resolve = () => {};
        send();
        again = () => {
          script.resolve = answer === "read" ? resolve : () => reject(new Error("lost"));
          send();
        };
      });
    });
    const mine = near.locks.lock(lock.name);
    const leaving = new AbortController();
    const waiting = mine.lock({ signal: leaving.signal });
    await queueing;
    await lock.queued(1);
    if (end === "had no caller") {
      leaving.abort("enough");
      await expect(waiting).rejects.toBe("enough");
      await first.unlock();
      await lock.gone();
    } else {
      await first.unlock();
      const lease = await waiting;
      const others = end === "was yielded" ? [held()] : [];
      if (end === "was yielded") {
        await lock.queued(1);
        others.push(mine.lock());
      }
      if (end === "was taken away") {
        await far.locks.lock(lock.name).forceUnlock();
        await until(() => lease.signal.aborted);
      }
      await lease.unlock().catch(() => {});
      for (const other of others) await (await other).unlock();
    }
    again();
    await near.redis.ping();
    await lock.gone(); // else it is blocked for a lease
  });
});

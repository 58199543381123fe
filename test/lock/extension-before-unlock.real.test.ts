// On a real Redis; in virtual time: test/world/directed/late-answers.test.ts.

import { describe, expect, it } from "vitest";
import { spinLua } from "../../src/wires/spin-lua.generated.ts";
import { Actor } from "../support/actor.ts";
import { loadScripts } from "../support/load-scripts.ts";
import { lockOf } from "../support/permit.ts";
import { runs, Stage, timed } from "../support/stage.ts";

// A hold for which an hour was asked is not handed on to a caller with a short lease, whatever
// Redis has answered: if that caller's process died, the others would wait for the hour.

const HOUR = 3_600_000;
const LEASE = 1_000;
const WINDOW = 800;
const LONGEST = Math.max(1.5 * LEASE, WINDOW);

const redis = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };
const stage = new Stage({ near: { redis, client: { leaseTime: LEASE, grantWindow: WINDOW } } });

describe("an extension that is not awaited, and an unlock for another caller of the process", () => {
  it.for(["lock", "redissonLock", "spinLock"] as const)(
    "if the process is then killed, others wait for its lease, and not for the extension: %s",
    async (kind, { annotate }) => {
      const { far, lock } = stage;
      await loadScripts(far.redis, spinLua);
      const client = { leaseTime: LEASE, grantWindow: WINDOW, localHandoffs: 16 };
      const actor = await Actor.start({ url: stage.server.url, client });
      await actor.call("passBehindExtension", kind, lock.name, HOUR);
      const { remaining } = await lockOf(far.locks, kind, lock.name).inspect();
      actor.kill();
      await actor.exit;
      await annotate(`${remaining} ms left`);
      expect(remaining).toBeLessThanOrEqual(LONGEST);
      const [lease, waited] = await timed(lockOf(far.locks, kind, lock.name).lock());
      await annotate(`the lock after ${waited} ms`);
      await lease.unlock();
    },
  );

  it("if the answer of the extension is lost, so too", async () => {
    const { near, lock, proxy } = stage;
    const first = await near.locks.lock(lock.name).lock();
    const second = near.locks.lock(lock.name).lock();
    const dropped = proxy.dropReply(runs("renew"));
    await expect(first.extend(HOUR)).rejects.toMatchObject({ code: "LOCK_UNAVAILABLE" });
    await dropped;
    await first.unlock().catch(() => {}); // its connection is away
    const lease = await second;
    expect(await lock.left()).toBeLessThanOrEqual(LONGEST);
    await lease.unlock();
    await lock.gone();
  });

  it("callers with equal leases still hand the lock off in memory", async () => {
    const { near, lock, proxy } = stage;
    const first = await near.locks.lock(lock.name).lock();
    const second = near.locks.lock(lock.name).lock();
    await first.extend(LEASE);
    proxy.record();
    await first.unlock();
    const lease = await second;
    expect(proxy.commands.filter(({ command }) => command[0] === "evalsha")).toEqual([]);
    await lease.unlock();
  });
});

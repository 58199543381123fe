// On a real Redis; in virtual time: test/world/directed/half-open.test.ts.

import { describe, expect, it } from "vitest";
import { redissonLock } from "../../src/redisson.ts";
import { redissonLua } from "../../src/wires/redisson-lua.generated.ts";
import { Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Redis takes no more connections (maxclients): each new one is told so and closed.

const stage = new Stage();

describe("the connection limit is reached", () => {
  it("for a subscriber of a lock without queue: it is tried at growing intervals", async ({ annotate }) => {
    const { far, lock, proxy } = stage;
    const shut = await stage.join({ url: proxy.url, client: { replyTimeout: 1_000 } });
    shut.locks.on("error", () => {}); // NO_MESSAGES
    const held = await redissonLock(far.locks, lock.name).lock();
    proxy.refuse(true);
    proxy.record();
    const tries = () => proxy.commands.filter(({ command }) => command[1] === redissonLua.acquire.sha).length;
    const waiting = redissonLock(shut.locks, lock.name).lock();
    // At 0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2 s, and when SUBSCRIBE is given up. If that counted for
    // every try that had waited for it, tries would breed tries.
    const [, took] = await timed(until(() => tries() >= 9, { what: "nine tries" }));
    await annotate(`nine tries in ${took} ms`);
    expect(took).toBeGreaterThan(2_500);
    const [lease, waited] = await timed(held.unlock().then(() => waiting));
    await annotate(`taken after ${waited} ms`);
    await lease.unlock();
  });
});

import type { Socket } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { LingerLearner } from "../../src/core/linger-learner.ts";
import { onNodeRedis } from "../support/carrier.ts";
import type { Party } from "../support/fixture.ts";
import { Stage, timedAwake } from "../support/stage.ts";
import { LINGERING } from "../support/stays.ts";

// Another process wants a lock that is cached, or would be: the holder is recalled, and gives it up,
// at every moment of its own commands.

/** ms: less than `linger`, and than a re-check. */
const AT_ONCE = 500;

vi.spyOn(LingerLearner.prototype, "keeps").mockReturnValue(true);
const stage = new Stage({ near: { client: LINGERING } });

describe("a recall", () => {
  it("is sent by a caller of another process, which has the lock at once, also under fake timers", async () => {
    const { near, far, lock } = stage;
    await stage.warm(near);
    await (await near.locks.lock(lock.name).lock()).unlock();
    const timers = ["setTimeout", "setInterval", "clearTimeout", "clearInterval"];
    // node-redis writes its commands with this one.
    const immediates = onNodeRedis ? [] : ["setImmediate", "clearImmediate"];
    vi.useFakeTimers({ toFake: [...timers, ...immediates] as ["setTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const [lease, waited] = await timedAwake(far.locks.lock(lock.name).lock());
    expect(waited).toBeLessThan(AT_ONCE);
    await lease.unlock();
  });

  it("is answered together with others that were read with it, in one write", async () => {
    const { near, far, lock } = stage;
    await stage.warm(near);
    const names = Array.from({ length: 8 }, (_, i) => `${lock.name} ${i}`);
    for (const name of names) await (await near.locks.lock(name).lock()).unlock();
    expect(near.locks.stats().kept).toBeGreaterThanOrEqual(8);
    const write = vi.spyOn(streamOf(near), "_write");
    const writev = vi.spyOn(streamOf(near), "_writev");
    // They are asked for in one packet, so that the recalls come in one.
    streamOf(far).cork();
    const waiting = names.map((name) => far.locks.lock(name).lock());
    streamOf(far).uncork();
    const leases = await Promise.all(waiting);
    expect(write.mock.calls.length + writev.mock.calls.length).toBeLessThanOrEqual(4);
    for (const lease of leases) await lease.unlock();
  });
});

it("a client releases the lock before listeners of the event run, which may block the event loop", async () => {
  const { near, far, lock } = stage;
  await stage.warm(near);
  await (await near.locks.lock(lock.name).lock()).unlock();
  const corked: number[] = [];
  near.locks.on("recall", () => void corked.push(streamOf(near).writableCorked));
  await (await far.locks.lock(lock.name).lock()).unlock();
  expect(corked).toEqual([0]);
});

const streamOf = ({ redis }: Party): Required<Socket> =>
  (redis as unknown as { stream: Required<Socket> }).stream;

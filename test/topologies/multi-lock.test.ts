import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { slotOf } from "../../src/util/slots.ts";
import { failure, lossOf, Section } from "../contract/observe.ts";
import { PATIENT_REPLY } from "../support/first-reply.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { trackUnhandled } from "../support/leaks.ts";
import { onScript } from "../support/scripts-sent.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { until } from "../support/until.ts";

// In Cluster locks have slots of their own: a multi-lock takes them one after the other, in the
// same order as everybody. Behind a prefix with a tag they share one, and are tried together.

const parties = new Parties();
const unhandled = trackUnhandled({ ignore: ["LOCK_SELF_WAIT"] });
let cluster: RedisCluster;
let mine: Party;
let theirs: Party;

const join = (keyPrefix = "", leaseTime = 30_000, replyTimeout = PATIENT_REPLY): Promise<Party> =>
  parties.join({ connect: () => cluster.connect({ keyPrefix }), client: { leaseTime, replyTimeout } });

beforeAll(async () => {
  cluster = await RedisCluster.launch({ replicas: 0 });
  [mine, theirs] = [await join(), await join()];
});
afterEach(() => unhandled.assertNone());
afterAll(async () => {
  unhandled.stop();
  await parties.close();
  await cluster?.stop();
});

/** Three names in their order, each on another primary. */
async function spread(): Promise<[string, string, string]> {
  const base = freshName();
  for (let i = 0; ; i++) {
    const names: [string, string, string] = [`${base}:a${i}`, `${base}:b${i}`, `${base}:c${i}`];
    const owners = await Promise.all(names.map((name) => cluster.primaryOf(slotOf(`holdfast:{${name}}`))));
    if (new Set(owners).size === 3) return names;
  }
}
const free = (names: readonly string[], { redis }: Party = mine): Promise<unknown> =>
  until(
    async () =>
      (await Promise.all(names.map((name) => redis.exists(`holdfast:{${name}}`)))).every(
        (there) => there === 0,
      ),
    { what: "all locks to be free", timeout: 4_000 },
  );

describe("members in several slots", () => {
  it("are acquired in order and given back together", async () => {
    const names = await spread();
    const lease = await mine.locks.multiLock([...names].reverse()).lock({ lease: 10_000 });
    expect([lease.names, lease.held]).toEqual([names, true]);
    expect(lease.remaining).toBeGreaterThan(8_000);
    expect(await theirs.locks.multiLock(names).tryLock()).toBeNull();
    for (const name of names) expect(await theirs.locks.lock(name).tryLock()).toBeNull();
    await lease.extend(60_000);
    expect(lease.remaining).toBeGreaterThan(50_000);
    await lease.unlock();
    await free(names);
  });

  it("are all given back when one is busy", async () => {
    const names = await spread();
    const held = await theirs.locks.lock(names[2]).lock();
    expect(await mine.locks.multiLock(names).tryLock()).toBeNull();
    await free(names.slice(0, 2));
    const error = failure(mine.locks.multiLock(names).lock({ wait: 300 }));
    expect(await error).toMatchObject({ code: "LOCK_TIMEOUT", lockName: names[2] });
    await free(names.slice(0, 2));
    await held.unlock();
    await free(names);
  });

  it("are given back at once, and no later one is acquired, when a node between them does not answer", async () => {
    const names = await spread();
    const [a, b, c] = names;
    // Before the others find that the node has failed, and refuse everything.
    const impatient = await join("", 30_000, 600);
    await (await impatient.locks.multiLock(names).lock()).unlock(); // connected to all of them
    const { server } = await cluster.primaryOf(slotOf(`holdfast:{${b}}`));
    server.suspend();
    const refused = failure(impatient.locks.multiLock(names).tryLock(100));
    await until(async () => (await mine.redis.exists(`holdfast:{${a}}`)) === 1, {
      what: "the first to be taken",
    });
    const behind = await theirs.locks.lock(c).tryLock();
    expect(await refused).toMatchObject({ code: "LOCK_UNAVAILABLE", lockName: b });
    expect(await mine.redis.exists(`holdfast:{${a}}`)).toBe(0);
    server.resume();
    expect(behind?.held).toBe(true);
    await behind?.unlock();
    await cluster.usable();
    await free(names);
  });

  it("that are lost abort the one signal", async () => {
    const names = await spread();
    const { locks } = await join("", 900);
    const lease = await locks.multiLock(names).lock();
    await mine.redis.del(`holdfast:{${names[1]}}`);
    const deleted = performance.now();
    expect(await lossOf(lease.signal)).toBe("gone");
    // By the renewal after a third of the lease, though members lived for 3 s while others were
    // taken: at 2.4 s otherwise.
    expect(performance.now() - deleted).toBeLessThan(800);
    expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_LOST", lockName: names[1] });
    await free(names);
  });

  it("never let callers wait for each other", async () => {
    const [a, b, c] = await spread();
    const section = new Section();
    const work = async ({ locks }: Party, names: string[]): Promise<void> => {
      for (let i = 0; i < 60; i++) await locks.multiLock(names).withLock({ wait: 20_000 }, section.visit);
    };
    await Promise.all([
      work(mine, [a, b, c]),
      work(theirs, [c, b, a]),
      work(await join(), [b, a]),
      work(mine, [c, b]),
    ]);
    expect(section).toMatchObject({ most: 1, visits: 240 });
    await free([a, b, c]);
  }, 60_000);
});

describe("members in one slot", () => {
  it("are tried at once, handed over by message, and notified of a force-release", async () => {
    const [near, far] = [await join("{app}:"), await join("{app}:")];
    const names = [1, 2, 3].map((i) => `${freshName()}:${i}`).sort();
    // The nodes know the scripts then, those of a client's first acquire and those of all later ones.
    for (let i = 0; i < 2; i++) await (await near.locks.multiLock(names).lock()).unlock();
    const sent: number[] = [];
    let turn = 0;
    onScript(near.redis, (_, send) => {
      sent.push(turn);
      send();
    });
    const taking = near.locks.multiLock(names).lock();
    turn = 1;
    const lease = await taking;
    expect(sent).toEqual([0, 0, 0]);
    const waiting = far.locks.multiLock(names).lock();
    const queued = async () =>
      (await Promise.all(names.map((name) => near.redis.zcard(`holdfast:{${name}}:queue`)))).join() ===
      "1,0,0";
    await until(queued, { what: "a place at the first" });
    await lease.unlock();
    const next = await waiting;
    expect(next.held).toBe(true);
    expect(await near.locks.lock(names[1] ?? "").forceUnlock()).toBe(true);
    expect(await lossOf(next.signal)).toBe("revoked"); // it is subscribed since it has waited
    await failure(next.unlock());
    await free(names, near);
  });
});

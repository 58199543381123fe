import { expect, test } from "vitest";
import { scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { BY_MESSAGE, outcomeOf, warm } from "./steps.ts";

// docs/guarantees.md, "semaphore": in which order callers of a process have permits, when another
// process has its turn, and what is shown of both. A semaphore of these scenes has three permits.

const ALL = { units: 3 };
const TWO = { units: 2 };

test(
  "a hundred callers of a process have one place, and enter in order, by fewer commands than they would need alone",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2);
    await warm(world, mine, theirs);
    const all = await theirs.take("semaphore", ALL);
    const { sent } = mine;
    const order: number[] = [];
    const callers = Array.from({ length: 100 }, async (_, i) => {
      const lease = await mine.take("semaphore");
      order.push(i);
      await world.pass(1);
      await lease.unlock();
    });
    await world.pass(10);
    expect(world.redis.queue("sem:a")).toEqual([mine.number]);
    await all.unlock();
    await Promise.all(callers);
    expect(order).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(mine.sent - sent).toBeLessThan(150);
  }),
);

test.each([
  ["less", 3, 1],
  ["more", 2, 3],
] as const)(
  "the first caller of a process leaves, and the next one wants %s: it has a place of its own at once",
  (_, first, second) =>
    scene(async (world) => {
      const [mine, theirs] = world.processes(2);
      await warm(world, mine, theirs);
      const others = await theirs.take("semaphore", TWO);
      const enough = new AbortController();
      const gone = outcomeOf(mine.take("semaphore", { units: first, signal: enough.signal }));
      await world.pass(10);
      expect(world.redis.queue("sem:a")).toEqual([mine.number]);
      const next = mine.take("semaphore", { units: second });
      await world.pass(1);
      enough.abort();
      await gone;
      if (second === 3) await others.unlock();
      const { result, took } = await world.timed(next);
      expect(took).toBeLessThan(BY_MESSAGE);
      await result.unlock();
      if (second !== 3) await others.unlock();
    })(),
);

const MINE = "mine";
const THEIRS = "theirs";

test.each([
  ["25 ms, if turns are long", {}, 40, [MINE, THEIRS, MINE]],
  ["each turn without local hand-offs", { localHandoffs: 0 }, 0, [MINE, THEIRS, MINE]],
  [
    "so many local hand-offs as its client allows",
    { localHandoffs: 3 },
    0,
    [MINE, MINE, MINE, MINE, THEIRS, MINE, MINE],
  ],
] as const)("another process has its turn after %s", (_, options, body, expected) =>
  scene(async (world) => {
    const [mine] = world.processes(1, options);
    const [theirs, third] = world.processes(2);
    await warm(world, mine, theirs);
    await warm(world, theirs, third);
    const held = await third.take("semaphore", ALL);
    const order: string[] = [];
    const enter = async (one: SceneProcess, who: string): Promise<void> => {
      const lease = await one.take("semaphore", ALL);
      order.push(who);
      if (body > 0) await world.pass(body);
      await lease.unlock();
    };
    const all = expected.slice(1).map(() => enter(mine, MINE));
    await world.pass(10);
    all.push(enter(theirs, THEIRS));
    await world.pass(10);
    await held.unlock();
    await Promise.all(all);
    expect(order).toEqual(expected);
  })(),
);

test(
  "fair: each caller of a process has a place of its own, which inspect() shows, and they are served in order",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2);
    const held = await theirs.take("fair semaphore", ALL);
    const units = [2, 3, 1, 3, 1];
    const order: number[] = [];
    const all = units.map(async (wanted, i) => {
      const lease = await mine.take("fair semaphore", { units: wanted });
      order.push(i);
      await lease.unlock();
    });
    await world.pass(20);
    expect(world.redis.queue("fsem:a")).toEqual(units.map(() => mine.number));
    const { waiters } = await theirs.does(() => theirs.client.semaphore("fsem:a").inspect());
    expect(waiters.map((one) => one.units)).toEqual(units);
    await held.unlock();
    await Promise.all(all);
    expect(order).toEqual([0, 1, 2, 3, 4]);
    const wrong = () => mine.client.semaphore("x", { permits: 1, fair: true, localHandoffs: 3 });
    expect(wrong).toThrow(/with fair: true there are no local hand-offs/);
  }),
);

test(
  "inspect() shows holders and waiters, with their units",
  scene(async (world) => {
    const [one] = world.processes(1);
    const held = await one.take("semaphore", { units: 2, lease: 20_000 });
    const waiting = one.take("semaphore", ALL);
    await world.pass(20);
    const party = {
      id: expect.stringContaining(one.client.id),
      label: null,
      host: `host${one.number}`,
      pid: 1_000 + one.number,
      since: expect.any(Number),
      mode: null,
    };
    const shown = await one.does(() => one.client.semaphore("sem:a").inspect());
    expect(shown).toEqual({
      permits: 3,
      isSet: false,
      used: 2,
      holders: [
        { ...party, units: 2, token: null, heldFor: expect.any(Number), remaining: expect.any(Number) },
      ],
      waiters: [{ ...party, units: 3, waitedFor: expect.any(Number) }],
      at: expect.any(Number),
      here: { waiting: 1, longest: expect.any(Number) },
    });
    await held.unlock();
    await (await waiting).unlock();
  }),
);

test(
  "events have the units of their call",
  scene(async (world) => {
    const [one] = world.processes(1);
    const told: unknown[] = [];
    for (const event of ["acquire", "wait", "giveup", "release"] as const)
      one.client.on(
        event,
        ({ kind, call, units }: { kind: string; call: number; units?: number | undefined }) =>
          told.push([event, kind, call, units]),
      );
    const lease = await one.take("semaphore", TWO);
    expect(await one.tryTake("semaphore", { ...ALL, wait: 1_000 })).toBeNull();
    await lease.unlock();
    expect(told).toEqual([
      ["acquire", "semaphore", 1, 2],
      ["wait", "semaphore", 2, 3],
      ["giveup", "semaphore", 2, 3],
      ["release", "semaphore", 1, 2],
    ]);
  }),
);

test(
  "one hold of several is force-released: it is lost for all callers that share it, and for no other one",
  scene(async (world) => {
    const [mine, theirs] = world.processes(2);
    const all = await theirs.take("semaphore", ALL);
    const head = mine.take("semaphore");
    await world.pass(100);
    const waiting = [mine.take("semaphore"), mine.take("semaphore")];
    await all.unlock();
    // The first one has a hold of its own, the others share one.
    const [other, ...shared] = await Promise.all([head, ...waiting]);
    const slots = theirs.client.semaphore("sem:a");
    const { holders } = await theirs.does(() => slots.inspect());
    expect(holders.map(({ units }) => units).sort()).toEqual([1, 2]);
    const holder = holders.find(({ units }) => units === 2)?.id ?? "";
    expect(await theirs.does(() => slots.forceUnlock({ holder, label: "me" }))).toBe(1);
    await world.pass(1);
    for (const one of shared) {
      expect(one.lease.signal.reason).toMatchObject({ reason: "revoked", by: "me" });
      expect(await outcomeOf(one.unlock())).toEqual(["LOCK_LOST", "revoked"]);
    }
    expect(other?.held).toBe(true);
    await other?.unlock();
  }),
);

test(
  "a caller waits for longer than two leases: an event says that this client holds what it waits for, only if that is so",
  scene(async (world) => {
    const [one, other] = world.processes(2);
    const told = one.heard("wait");
    const shown = () => told.splice(0).map(({ heldBy, units }) => [heldBy, units]);
    const short = { lease: 500 };
    const mine = await one.take("semaphore");
    const theirs = await other.take("semaphore", TWO);
    // The other process has what it waits for.
    const plain = one.take("semaphore", { ...TWO, ...short });
    await world.pass(4_000);
    expect(shown()).toEqual([["unknown", 2]]);
    await theirs.unlock();
    await (await plain).unlock();
    // Its own process has all.
    const rest = await one.take("semaphore", TWO);
    shown();
    const stuck = one.take("semaphore", short);
    await world.pass(4_000);
    expect(shown()).toEqual([
      ["unknown", 1],
      ["this client", 1],
    ]);
    await mine.unlock();
    await (await stuck).unlock();
    await rest.unlock();
  }),
);

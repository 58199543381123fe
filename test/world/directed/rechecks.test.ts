import { expect, test } from "vitest";
import { scene } from "./scene.ts";
import { inTurn, warm } from "./steps.ts";

// What parked callers send.

/** ms: the shortest time between two re-checks. */
const PERIOD = 1_125;

test(
  "a parked caller sends its re-checks, and no other command until it leaves",
  scene(async (world) => {
    const [holder, ...all] = world.processes(5);
    for (const one of all) await warm(world, one, holder);
    const held = await holder.take("lock");
    const before = all.map(({ sent }) => sent);
    const waiting = all.map((one) => one.take("lock", { wait: 4_000 }).catch(({ code }) => code as string));
    expect(await Promise.all(waiting)).toEqual(Array(4).fill("LOCK_TIMEOUT"));
    await world.pass(10);
    for (const [i, { sent }] of all.entries()) {
      const count = sent - (before[i] ?? 0);
      // The place in the queue, the re-checks, and the leave.
      expect(count).toBeGreaterThanOrEqual(1 + 2 + 1);
      expect(count).toBeLessThanOrEqual(1 + Math.ceil(4_000 / PERIOD) + 1);
    }
    await held.unlock();
  }),
);

test.each([
  ["lock", "fairLock"],
  ["fairLock", "lock"],
] as const)(
  "a caller of %s re-checks for one of %s of the same name after it, which goes on when the first leaves",
  (first, last) =>
    scene(async (world) => {
      const [holder, one] = world.processes(2);
      const held = await holder.take("lock of a shared name");
      const leaving = new AbortController();
      const places: unknown[] = [];
      const look = one.on(({ script: { name }, argv }) => {
        if (!name.endsWith("recheck")) return false;
        places.push(argv[0]);
        return places.length >= 6;
      });
      const left = one
        .take(`${first} of a shared name`, { signal: leaving.signal })
        .catch((reason: unknown) => reason);
      await world.pass(20);
      const seen = look.sent();
      const waiting = one.take(`${last} of a shared name`);
      // The first re-check of the second one would come in this time.
      await world.pass(4_000);
      expect([places.length >= 2, new Set(places).size]).toEqual([true, 1]);
      leaving.abort("enough");
      expect(await left).toBe("enough");
      await seen;
      expect(new Set(places).size).toBe(2);
      await held.unlock();
      await inTurn(world, waiting);
    })(),
);

test(
  "a grant comes during a re-check: the next caller here re-checks before the first can release",
  scene(async (world) => {
    const [holder, one] = world.processes(2);
    await warm(world, one, holder);
    const held = await holder.take("fairLock");
    const sent: string[] = [];
    const all = one
      .on(({ script: { name }, argv }) => {
        if (name.endsWith("recheck")) sent.push(`look of ${argv[0]}`);
        if (/release$/.test(name)) sent.push("release");
        return sent.length >= 4;
      })
      .sent();
    const waiting = [one.take("fairLock"), one.take("fairLock")];
    await one.on("recheck").sent(() => one.commands.freeze(100));
    await held.unlock();
    for (const next of waiting) await (await next).unlock();
    await all;
    expect(sent).toEqual([sent[0], expect.stringMatching(/^look of /), "release", "release"]);
    expect(sent[1]).not.toBe(sent[0]);
  }),
);

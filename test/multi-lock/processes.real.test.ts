// On a real Redis; in virtual time: test/world/directed/multi-lock.test.ts,
// test/world/directed/multi-lock-waiting.test.ts.

import { describe, expect, it } from "vitest";
import { seeded } from "../contract/seed.ts";
import { Actor } from "../support/actor.ts";
import { Beside } from "../support/beside.ts";
import { freshName } from "../support/fixture.ts";
import type { HammerAllOptions, HammerAllReport } from "../support/hammer-all.ts";
import { until } from "../support/until.ts";

// Real processes that want the same locks in different orders. `HOLDFAST_SECONDS=60` makes it last a minute.

const SECONDS = Number(process.env.HOLDFAST_SECONDS ?? 3);
const { seed, next } = seeded();
const beside = new Beside();

const start = (client: Record<string, unknown> = {}): Promise<Actor> =>
  Actor.start({ url: beside.server.url, client });
const cleared = (names: readonly string[]): Promise<unknown> =>
  until(async () => (await beside.here.redis.exists(...names.map((name) => `holdfast:{${name}}`))) === 0, {
    what: "all locks to be free",
    timeout: 4_000,
  });

/** What all processes report, when nothing was wrong. */
async function hammerWith(
  choices: readonly HammerAllOptions["choice"][],
  names: readonly string[],
  tasks: number,
): Promise<HammerAllReport[]> {
  const actors = await Promise.all(choices.map(() => start()));
  const prefix = `${freshName("witness")}:`;
  const reports = await Promise.all(
    actors.map((actor, i) =>
      actor.call("hammerAll", {
        names,
        tasks,
        ms: SECONDS * 1_000,
        seed: Math.floor(next() * 2 ** 31),
        choice: choices[i] ?? "random",
        prefix,
      }),
    ),
  );
  for (const name of names) {
    const visits = reports.reduce((sum, report) => sum + (report.visits[name] ?? 0), 0);
    expect(Number(await beside.here.redis.get(`${prefix}${name}:count`))).toBe(visits);
  }
  for (const report of reports) expect(report).toMatchObject({ overlaps: 0, staleTokens: 0 });
  await cleared(names);
  await Promise.all(actors.map((actor) => actor.end()));
  return reports;
}

const told = (reports: readonly HammerAllReport[]): string =>
  reports
    .map(
      ({ acquisitions, gaveUp, longestWait }) =>
        `${acquisitions} acquisitions, ${gaveUp} given up, longest wait ${Math.round(longestWait)} ms`,
    )
    .join("; ");

describe(`processes (seed ${seed})`, { timeout: SECONDS * 1_000 + 60_000 }, () => {
  it("that name [a, b] and [b, a] never wait for each other", async ({ annotate }) => {
    const names = [freshName("a"), freshName("b")];
    const reports = await hammerWith(["all", "reversed"], names, 3);
    await annotate(told(reports));
    for (const { acquisitions, longestWait } of reports) {
      expect(acquisitions).toBeGreaterThan(SECONDS); // one that waits for itself comes no further for 30 s
      expect(longestWait).toBeLessThan(10_000);
    }
  });

  it("with overlapping sets at random: every lock has one holder at a time, and each caller is served", async ({
    annotate,
  }) => {
    const names = Array.from({ length: 5 }, () => freshName("some"));
    const reports = await hammerWith(["random", "random", "random"], names, 3);
    await annotate(told(reports));
    for (const { acquisitions } of reports) expect(acquisitions).toBeGreaterThan(1);
  });

  it("a killed holder of three costs the others its lease and a re-check", async () => {
    const names = [1, 2, 3].map((i) => freshName(`killed-${i}`));
    const actor = await start({ leaseTime: 2_000 });
    const tokens = await actor.call("acquireAll", names, 0);
    const waiting = beside.here.locks.multiLock([...names].reverse()).lock();
    await until(async () => (await beside.here.redis.zcard(`holdfast:{${names[0]}}:queue`)) === 1);
    const begin = performance.now();
    actor.kill("SIGKILL");
    const lease = await waiting;
    expect(performance.now() - begin).toBeLessThan(3 * (2_000 + 1_875));
    for (const [i, name] of lease.names.entries())
      expect(lease.tokens.get(name)).toBeGreaterThan(tokens?.[i] ?? Number.POSITIVE_INFINITY);
    await lease.unlock();
    await cleared(names);
  });

  it("a process killed while it waits for the third leaves the first two for no longer than its lease", async () => {
    const names = [1, 2, 3].map((i) => freshName(`killed-${i}`));
    const held = await beside.here.locks.lock(names[2] ?? "").lock();
    const actor = await start({ leaseTime: 2_000 });
    const dying = actor.call("acquireAll", names, 60_000).catch(() => "dead");
    await until(async () => (await beside.here.redis.zcard(`holdfast:{${names[2]}}:queue`)) === 1);
    const waiting = beside.here.locks.multiLock(names.slice(0, 2)).lock();
    await until(async () => (await beside.here.redis.zcard(`holdfast:{${names[0]}}:queue`)) === 1);
    const begin = performance.now();
    actor.kill("SIGKILL");
    expect(await dying).toBe("dead");
    const lease = await waiting;
    // Members live at least for 3 s while others are waited for.
    expect(performance.now() - begin).toBeLessThan(3 * (3_000 + 1_875));
    await lease.unlock();
    await held.unlock();
    await cleared(names);
  });
});

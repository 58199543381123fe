import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Ask, Contender } from "../../benchmarks/contenders/contender.ts";
import { freshName, testUrl } from "../support/fixture.ts";

// The benchmarks call each library right: two of its clients exclude each other, and a caller that
// waits gets the lock.

// Not by its name: the types of these libraries are not here before they are installed.
const registry = new URL("../../benchmarks/contenders/all.ts", import.meta.url).href;
const { contenders } = (await import(registry)) as { contenders: Readonly<Record<string, Contender>> };

const libraries = existsSync(fileURLToPath(new URL("../../benchmarks/node_modules", import.meta.url)));
if (!libraries)
  process.stderr.write("Skipped: the contenders of the benchmarks. npm run bench:build installs them\n");

/**
 * Each client of these needs a process: simple-redis-mutex has one subscriber for all, and the
 * timers of node-redisson outlive it and reject. The benchmarks look for overlaps of these.
 */
const ALONE = ["simple-redis-mutex", "node-redisson"];
/** Floors are no locks; the others let more than one caller in. */
const locks = Object.entries(contenders).filter(
  ([id, { waits, room = 1 }]) => waits !== "floor" && room === 1 && !ALONE.includes(id),
);

const CALLERS = 3;
const TURNS = 5;
const AT_ONCE: Ask = { wait: 50, lease: null, isWriter: false };
const PATIENT: Ask = { ...AT_ONCE, wait: 50_000 };

describe.runIf(libraries)("two processes with", () => {
  it.each(locks)("%s exclude each other", async (_, { open }) => {
    const place = { workers: 2, library: null };
    const sessions = await Promise.all([0, 1].map((worker) => open(testUrl(), { ...place, worker })));
    const [one, other] = sessions;
    const name = freshName();

    const release = await one?.acquire(name, PATIENT);
    expect(release).toBeTypeOf("function");
    expect(await other?.acquire(name, AT_ONCE)).toBeNull();
    // A lease of the caller's own choice is one that the library can have.
    const waiting = other?.acquire(name, { ...PATIENT, lease: 20_000 });
    await release?.();
    const next = await waiting;
    expect(next).toBeTypeOf("function");
    await next?.();

    let [inside, most, turns] = [0, 0, 0];
    const loop = async (session: (typeof sessions)[number]): Promise<void> => {
      for (let i = 0; i < TURNS; i++) {
        const leave = await session.acquire(name, PATIENT);
        expect(leave).toBeTypeOf("function");
        most = Math.max(most, ++inside);
        turns++;
        await new Promise(setImmediate);
        inside--;
        await leave?.();
      }
    };
    await Promise.all(sessions.flatMap((session) => Array.from({ length: CALLERS }, () => loop(session))));
    expect({ most, turns }).toEqual({ most: 1, turns: sessions.length * CALLERS * TURNS });
    for (const session of sessions) await session.close();
  });
});

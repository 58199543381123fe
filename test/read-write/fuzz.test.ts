import { expect, it } from "vitest";
import type { LockClient } from "../../src/index.ts";
import { Dice } from "../chaos/dice.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";

// Readers and writers of several processes at one lock, at random; a checker of what all of them
// saw, by time and by token.

const own = new OwnServer();
const SEED = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** A time inside, in ms on this process's clock. `until` is Infinity as long as it lasts. */
interface Stay {
  readonly mode: "read" | "write";
  readonly token: number;
  readonly from: number;
  until: number;
}

/**
 * What must not be: a writer with another one, or tokens that do not tell writers from the readers
 * before and behind them.
 */
function faults(stays: readonly Stay[]): string[] {
  const found: string[] = [];
  for (const writer of stays.filter(({ mode }) => mode === "write"))
    for (const other of stays) {
      if (other === writer) continue;
      if (other.from < writer.until && writer.from < other.until) found.push(`with ${JSON.stringify(other)}`);
      const isBefore = other.until <= writer.from;
      if (isBefore ? other.token >= writer.token : other.token < writer.token)
        found.push(`token of ${JSON.stringify(other)}`);
      // Behind a writer that has become a reader others read with its token.
      if (!isBefore && other.token === writer.token && other.mode === "write") found.push(`token twice`);
    }
  return found;
}

it(`a writer never overlaps with another caller (TEST_SEED=${SEED})`, async () => {
  const dice = new Dice(SEED);
  const clients: LockClient[] = [];
  for (let i = 0; i < 3; i++) clients.push((await own.parties.join({ url: own.url })).locks);
  const name = freshName();
  const stays: Stay[] = [];
  const pause = (): Promise<void> => new Promise((done) => setTimeout(done, dice.int(0, 3)));
  const inside = async (mode: "read" | "write", token: number, body = pause): Promise<void> => {
    const stay = { mode, token, from: performance.now(), until: Number.POSITIVE_INFINITY };
    stays.push(stay);
    await body();
    stay.until = performance.now();
  };
  const caller = async (locks: LockClient): Promise<void> => {
    for (let i = 0; i < 12; i++) {
      const { read, write } = locks.readWriteLock(name, { fair: dice.chance(0.1) });
      const wait = dice.chance(0.2) ? dice.int(0, 20) : Number.POSITIVE_INFINITY;
      const lease = dice.chance(0.3) ? { lease: dice.int(2_000, 60_000) } : {};
      if (dice.chance(0.25)) {
        // As a writer, and as a reader when that has gone.
        await locks.scope(async () => {
          const writer = await write.tryLock({ wait, ...lease });
          if (!writer) return;
          await inside("write", writer.token);
          const reader = dice.chance(0.5) ? await read.lock(lease) : null;
          await writer.unlock();
          if (!reader) return;
          await inside("read", reader.token);
          await reader.unlock();
        });
      } else {
        const reader = await read.tryLock({ wait, ...lease });
        if (reader) await inside("read", reader.token);
        await reader?.unlock();
      }
    }
  };
  await Promise.all(clients.flatMap((locks) => Array.from({ length: 5 }, () => caller(locks))));
  expect(faults(stays)).toEqual([]);
  expect(stays.length).toBeGreaterThan(80);
  expect(await own.admin.exists(`holdfast:rw:{${name}}`, `holdfast:rw:{${name}}:queue`)).toBe(0);
});

it("the checker finds a writer beside a reader, and a token that is too small", () => {
  const stay = (mode: "read" | "write", token: number, from: number, until: number): Stay => {
    return { mode, token, from, until };
  };
  expect(faults([stay("write", 2, 0, 2), stay("read", 2, 2, 3), stay("write", 3, 3, 4)])).toEqual([]);
  expect(faults([stay("write", 2, 0, 2), stay("read", 3, 1, 3)])).toHaveLength(1);
  expect(faults([stay("read", 3, 0, 1), stay("write", 3, 2, 3)])).toHaveLength(1);
  expect(faults([stay("write", 3, 0, 1), stay("read", 2, 2, 3)])).toHaveLength(1);
});

import { inspect } from "node:util";
import { afterAll, expect, it } from "vitest";
import {
  ConflictError,
  FencedWriteError,
  LockLostError,
  LockTimeoutError,
  LockUnavailableError,
  NotReplicatedError,
  StaleTokenError,
} from "../../src/index.ts";
import { quote } from "../../src/util/quote.ts";
import { readVisible, visible } from "../../src/util/visible.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { HOSTILE, LONE, UNPRINTABLE } from "../support/hostile-texts.ts";

// Messages of errors, and what console.log shows: names, labels, and what Redis or a connection says.

const parties = new Parties();
afterAll(parties.close);

const ALL = [...HOSTILE, ...LONE];

it("no message contains a foreign text unescaped, or more than one line", () => {
  for (const text of ALL) {
    const owner = { id: text, label: text, client: text, host: text, pid: 1, number: 1, since: 1 };
    const cause = new Error(text);
    for (const error of [
      new LockLostError(text, "revoked", undefined, undefined, text),
      new LockUnavailableError(text, "no answer", cause),
      new LockTimeoutError(text, 5, 1, "somebody else", 0, "Lock", owner),
      new LockTimeoutError(text, 5, 1, "somebody else", 0, "Lock", { ...owner, host: null, label: null }),
      new NotReplicatedError(text, 2, 1),
      new StaleTokenError(text, text, 1, 2),
      new FencedWriteError(text, text, cause),
      new ConflictError([text, text], 3),
    ]) {
      expect(error.message).not.toMatch(UNPRINTABLE);
      expect(error.message).not.toContain("\n");
      expect(error.message).toContain(visible(text).slice(0, 90).replaceAll("'", "\\'"));
    }
    const timeout = new LockTimeoutError("x", 5, 1, "somebody else", 0, "Lock", owner);
    expect(timeout.message).toContain(` held by ${visible(text)} (${visible(text)}:1) when`);
    // Programs have it as it is.
    expect(new NotReplicatedError(text, 2, 1).lockName).toBe(text);
  }
});

it("a quoted name ends at its quote, can be read back, and is not cut inside an escape", () => {
  for (const text of ALL) {
    const quoted = quote(text);
    expect(quoted).toMatch(/^'(?:[^'\\]|\\[\\']|\\u[0-9a-f]{4})*'$/);
    if (!quoted.endsWith("…'")) expect(readVisible(quoted.slice(1, -1))).toBe(text);
    expect(quote("x".repeat(95) + text).length).toBeLessThanOrEqual(102);
    expect(quote("x".repeat(95) + text)).toMatch(/^'(?:[^'\\]|\\[\\']|\\u[0-9a-f]{4})*'$/);
  }
  expect(quote("😀".repeat(80))).toBe(`'${"😀".repeat(49)}…'`);
  const huge = performance.now();
  quote("\u202e".repeat(10_000_000));
  expect(performance.now() - huge).toBeLessThan(1_000);
});

it("console.log escapes locks and leases too", async () => {
  const { locks } = await parties.join();
  for (const text of ALL.filter((one) => !LONE.includes(one))) {
    const name = `${freshName()}${text}`;
    const lease = await locks.lock(name).lock();
    for (const one of [locks.lock(name), lease, locks.semaphore(name, { permits: 1 }), locks.election(name)])
      for (const colors of [true, false]) {
        const shown = inspect(one, { colors, breakLength: 40 });
        const escapes = new RegExp(`${"\x1b"}\\[\\d+m`, "g");
        expect(colors ? shown.replace(escapes, "") : shown).not.toMatch(UNPRINTABLE);
      }
    await lease.unlock();
  }
});

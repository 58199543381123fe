import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { LockEvents, LockLostError } from "../../src/index.ts";
import type { CallSites } from "../../src/tools/ui/call-sites.ts";
import type { Told } from "../../src/tools/ui/observed.ts";
import { decodeTold } from "../../src/tools/ui/observed.ts";
import { Reporter } from "../../src/tools/ui/reporter.ts";

// What an observed process reports of its calls, with the events of a client as its only input, on a
// clock of the test.

vi.mock("../../src/util/client-timer.ts", () => ({
  clientTimer: (ring: () => void, ms: number) => setTimeout(ring, ms),
}));
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

const ID = "web-1:7:0123456789abcdef";
const S = 1_000;

function observed(sites: CallSites | null = null) {
  const told: Told[] = [];
  const reporter = new Reporter(ID, sites, (one) => told.push(one));
  const { listeners } = reporter;
  const tell = <K extends keyof typeof listeners>(
    event: K,
    call: number,
    more: Partial<Parameters<LockEvents[K]>[0]> = {},
  ): void => {
    const whole = { name: "order:42", kind: "lock", call, token: call, ...more };
    (listeners[event] as (event: unknown) => void)(whole);
  };
  /** The calls of all reports so far. */
  const calls = () => told.flatMap(({ calls }) => calls);
  return { told, tell, calls, reporter };
}

it("a call that neither waited nor held the lock for 1 s is not reported, and all others are", async () => {
  const { tell, calls, told } = observed();
  tell("acquire", 1, { waitedFor: 3 });
  await vi.advanceTimersByTimeAsync(999);
  tell("release", 1, { heldFor: 999 });
  tell("giveup", 2, { waitedFor: 0, why: "busy" });
  await vi.advanceTimersByTimeAsync(60 * S);
  expect(calls()).toEqual([]);
  tell("acquire", 3, { waitedFor: 0 });
  await vi.advanceTimersByTimeAsync(1 * S);
  tell("release", 3, { heldFor: 1 * S });
  tell("wait", 4);
  await vi.advanceTimersByTimeAsync(20);
  tell("acquire", 4, { waitedFor: 20 });
  tell("release", 4, { heldFor: 2 });
  tell("wait", 5);
  await vi.advanceTimersByTimeAsync(30);
  tell("giveup", 5, { waitedFor: 30, why: "timeout" });
  await vi.advanceTimersByTimeAsync(60 * S);
  expect(calls()).toMatchObject([
    { call: 3, how: "released", waitedFor: 0, heldFor: 1 * S, token: 3, why: null },
    { call: 4, how: "released", waitedFor: 20, heldFor: 2 },
    { call: 5, how: "giveup", waitedFor: 30, heldFor: null, why: "timeout" },
  ]);
  for (const one of told) expect(decodeTold(JSON.stringify(one))).toEqual(one);
});

it("a hold that lasts is reported after 5 s, again every minute, and at its end", async () => {
  const { tell, calls, told } = observed();
  tell("wait", 1);
  tell("acquire", 1, { waitedFor: 40 });
  await vi.advanceTimersByTimeAsync(4 * S);
  // Its wait alone is counted by now; the call itself is reported while it lasts, or when it ends.
  expect(calls()).toEqual([]);
  await vi.advanceTimersByTimeAsync(7 * S);
  expect(calls()).toMatchObject([
    { call: 1, how: "holds", waitedFor: 40, heldFor: expect.any(Number), why: null },
  ]);
  await vi.advanceTimersByTimeAsync(150 * S);
  expect(calls().map(({ how }) => how)).toEqual(["holds", "holds", "holds"]);
  tell("release", 1, { heldFor: 161 * S });
  await vi.advanceTimersByTimeAsync(600 * S);
  expect(calls().at(-1)).toMatchObject({ call: 1, how: "released", heldFor: 161 * S });
  expect(calls()).toHaveLength(4);
  for (const one of told) expect(decodeTold(JSON.stringify(one))).toEqual(one);
});

it("a renewal is reported soon, because it tells how long the lease is", async () => {
  const { tell, calls } = observed();
  tell("acquire", 1, { waitedFor: 0 });
  await vi.advanceTimersByTimeAsync(10 * S);
  expect(calls()).toMatchObject([{ how: "holds", lease: null }]);
  tell("renew", 1, { remaining: 29_998 });
  await vi.advanceTimersByTimeAsync(10 * S);
  expect(calls()).toMatchObject([{ lease: null }, { how: "holds", lease: 29_998 }]);
  tell("renew", 1, { remaining: 29_997 });
  await vi.advanceTimersByTimeAsync(20 * S);
  expect(calls()).toHaveLength(2);
});

it("a lease that was extended is reported soon after its next renewal", async () => {
  const { tell, calls } = observed();
  tell("acquire", 1, { waitedFor: 0 });
  tell("renew", 1, { remaining: 29_998 });
  await vi.advanceTimersByTimeAsync(10 * S);
  tell("renew", 1, { remaining: 95_000 });
  await vi.advanceTimersByTimeAsync(10 * S);
  expect(calls()).toMatchObject([{ lease: 29_998 }, { lease: 95_000 }]);
});

it("a loss is reported, also one that only the release has found out", async () => {
  const { tell, calls } = observed();
  const error = { reason: "revoked", by: "alice" } as LockLostError;
  tell("acquire", 1, { waitedFor: 0 });
  tell("lost", 1, { heldFor: 20, error });
  tell("acquire", 2, { waitedFor: 0 });
  tell("release", 2, { heldFor: 30 });
  tell("lost", 2, { heldFor: 30, error: { reason: "expired", by: null } as LockLostError });
  // Others of this call still hold the lock.
  tell("acquire", 3, { waitedFor: 0 });
  tell("lost", 3, { heldFor: 30, error, remains: true });
  await vi.advanceTimersByTimeAsync(4 * S);
  expect(calls()).toMatchObject([
    { call: 1, how: "lost", heldFor: 20, why: "revoked by alice" },
    { call: 2, how: "lost", heldFor: 30, why: "expired", token: 2 },
  ]);
});

it("a call for several locks that gives up is reported once, and waits for none of them any more", async () => {
  const { tell, calls, told } = observed();
  tell("wait", 1, { name: "a" });
  tell("wait", 1, { name: "b" });
  tell("giveup", 1, { name: "b", waitedFor: 500, why: "timeout" });
  // As if a later call had the same number: nothing of the first is left.
  tell("acquire", 1, { name: "a", waitedFor: 700 });
  tell("release", 1, { name: "a", heldFor: 5 });
  await vi.advanceTimersByTimeAsync(4 * S);
  expect(calls()).toMatchObject([{ name: "b", how: "giveup", waitedFor: 500 }]);
  expect(Object.keys(told[0]?.waits ?? {})).toEqual(["b"]);
});

it("each lock of several that a call gets is reported by its own end", async () => {
  const { tell, calls } = observed();
  tell("wait", 1, { name: "a" });
  tell("wait", 1, { name: "b" });
  for (const name of ["a", "b"]) tell("acquire", 1, { name, waitedFor: 90 });
  await vi.advanceTimersByTimeAsync(500);
  for (const name of ["b", "a"]) tell("release", 1, { name, heldFor: 500 });
  await vi.advanceTimersByTimeAsync(4 * S);
  expect(calls().map(({ name, how, waitedFor }) => [name, how, waitedFor])).toEqual([
    ["b", "released", 90],
    ["a", "released", 90],
  ]);
});

it("of many calls in a few seconds the latest are reported, in one entry per 5 s", async () => {
  const { tell, calls, told } = observed();
  for (let call = 1; call <= 500; call++) {
    tell("wait", call);
    await vi.advanceTimersByTimeAsync(20);
    tell("acquire", call, { waitedFor: 20 });
    tell("release", call, { heldFor: 1 });
  }
  await vi.advanceTimersByTimeAsync(60 * S);
  expect(told.length).toBeLessThan(5);
  expect(calls().length).toBeLessThanOrEqual(50 * told.length);
  expect(calls().at(-1)).toMatchObject({ call: 500 });
  const counted = told.flatMap(({ waits }) => Object.values(waits["order:42"] ?? {}));
  expect(counted.reduce((sum, one) => sum + one, 0)).toBe(500);
});

it("a process that has nothing to report says every 10 min that it is observed", async () => {
  const { told } = observed();
  await vi.advanceTimersByTimeAsync(5 * S);
  expect(told).toEqual([{ client: ID, waits: {}, calls: [] }]);
  await vi.advanceTimersByTimeAsync(3_600 * S);
  expect(told.length).toBeGreaterThanOrEqual(6);
  expect(told.length).toBeLessThanOrEqual(8);
});

it("the end of a call that was reported while it lasted is not among those left out", async () => {
  const { tell, calls } = observed();
  tell("acquire", 1, { waitedFor: 0 });
  await vi.advanceTimersByTimeAsync(10 * S);
  tell("release", 1, { heldFor: 10 * S });
  for (let call = 2; call <= 500; call++) {
    tell("wait", call);
    tell("acquire", call, { waitedFor: 20 });
    tell("release", call, { heldFor: 1 });
  }
  await vi.advanceTimersByTimeAsync(60 * S);
  expect(calls()).toHaveLength(51);
  expect(
    calls()
      .filter(({ call }) => call === 1)
      .map(({ how }) => how),
  ).toEqual(["holds", "released"]);
});

/** Stacks of calls, of which `texts` counts those whose text was made. */
function fakeSites() {
  const ended = new Set<number>();
  const known = { texts: 0 };
  const of = (call: number) =>
    ended.has(call)
      ? null
      : {
          get stack() {
            known.texts++;
            return `Error\n    at pay (/srv/app/pay.js:${call}:1)`;
          },
        };
  const sites = { of, ended: (call: number) => void ended.add(call), close: () => {} };
  return { known, ended, sites: sites as unknown as CallSites };
}

it("a call for several locks that gives some of them back and gives up is reported with its line", async () => {
  const { sites, ended } = fakeSites();
  const { tell, calls } = observed(sites);
  tell("acquire", 1, { name: "a", waitedFor: 0 });
  tell("wait", 1, { name: "b" });
  tell("release", 1, { name: "a", heldFor: 100 });
  tell("giveup", 1, { name: "b", waitedFor: 100, why: "timeout" });
  await vi.advanceTimersByTimeAsync(4 * S);
  expect(calls()).toMatchObject([{ name: "b", how: "giveup", site: "pay (/srv/app/pay.js:1:1)" }]);
  expect([...ended]).toEqual([1]);
});

it("the text of a stack is made only for calls that are reported", async () => {
  const { sites, known } = fakeSites();
  const { tell, calls } = observed(sites);
  for (let call = 1; call <= 500; call++) {
    tell("wait", call);
    tell("giveup", call, { waitedFor: 20, why: "timeout" });
  }
  await vi.advanceTimersByTimeAsync(60 * S);
  expect(calls()).toHaveLength(50);
  expect(calls().at(-1)).toMatchObject({ site: "pay (/srv/app/pay.js:500:1)" });
  expect(known.texts).toBe(50);
});

it("what is left is reported when it is closed, and nothing after that", async () => {
  const { tell, told, calls, reporter } = observed();
  tell("acquire", 1, { waitedFor: 0 });
  tell("wait", 2);
  tell("giveup", 2, { waitedFor: 1, why: "timeout" });
  reporter.close();
  expect(calls()).toMatchObject([{ call: 2, how: "giveup" }]);
  await vi.advanceTimersByTimeAsync(600 * S);
  reporter.close();
  expect(told).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
  // Of calls that need no report there is none.
  const { told: none, reporter: other } = observed();
  other.close();
  expect(none).toEqual([]);
});

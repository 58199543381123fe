import { expect, it } from "vitest";
import type { ToldCall } from "../../src/tools/ui/observed.ts";
import { ReportedCalls } from "../../src/tools/ui/reported-calls.ts";
import { toldCall } from "../support/told-call.ts";

const CLIENT = "web-1:7:0123456789abcdef";
const NOW = 1_000_000;
const holder = (token: number | null, client = CLIENT) => ({ id: `${client}:00000001`, token });
const ago = (ms: number, how: ToldCall["how"], changes: Partial<ToldCall> = {}) =>
  toldCall("order:42", how, { ago: ms, ...changes });

it("the last report of a call replaces the earlier ones", () => {
  const calls = new ReportedCalls();
  const call = 7;
  calls.add(CLIENT, NOW, ago(0, "holds", { call, heldFor: 5_000 }));
  // Another process, and another call, may have the same number.
  calls.add("web-2:7:0123456789abcdef", NOW, ago(0, "released", { call }));
  calls.add(CLIENT, NOW, ago(0, "released", { call: 8 }));
  calls.add(CLIENT, NOW + 60_000, ago(0, "holds", { call, heldFor: 65_000 }));
  calls.add(CLIENT, NOW + 70_000, ago(2_000, "lost", { call, heldFor: 73_000 }));
  const all = calls.all("lock", [], NOW + 70_000);
  expect(all.map(({ how, ago: ms }) => [how, ms])).toEqual([
    ["lost", 2_000],
    ["released", 70_000],
    ["released", 70_000],
  ]);
});

it("a call that a holder has made is told of that holder, and otherwise has no end", () => {
  const calls = new ReportedCalls();
  calls.add(CLIENT, NOW, ago(0, "holds", { token: 4_711, lease: 30_000, site: "pay (src/pay.ts:4:2)" }));
  expect(calls.of("lock", holder(4_711))).toMatchObject({ lease: 30_000, site: "pay (src/pay.ts:4:2)" });
  expect(calls.all("lock", [holder(4_711)], NOW)).toEqual([]);
  // A later hold of the same process, and one of another.
  for (const other of [holder(4_712), holder(4_711, "web-2:7:0123456789abcdef")]) {
    expect(calls.of("lock", other)).toBeNull();
    expect(calls.all("lock", [other], NOW)).toMatchObject([{ how: "holds", host: "web-1", pid: 7 }]);
  }
});

it("a call that got the lock by a local hand-off has a higher token than its hold in Redis", () => {
  const calls = new ReportedCalls();
  calls.add(CLIENT, NOW, ago(0, "holds", { token: 4_713, site: "pay (src/pay.ts:4:2)" }));
  expect(calls.of("lock", holder(4_711))).toMatchObject({ site: "pay (src/pay.ts:4:2)" });
  expect(calls.all("lock", [holder(4_711)], NOW)).toEqual([]);
});

it("a permit has no token: any hold of its client may be it", () => {
  const calls = new ReportedCalls();
  calls.add(CLIENT, NOW, ago(0, "holds", { kind: "semaphore", token: null, lease: 9_000 }));
  expect(calls.of("semaphore", holder(null))).toMatchObject({ lease: 9_000 });
});

it("locks of several kinds with one name have their own calls; those of a multi-lock may be of each", () => {
  const calls = new ReportedCalls();
  const kinds = [
    "fair",
    "write",
    "semaphore",
    "election",
    "remember",
    "redissonFenced",
    "multi",
    "spin",
    "once",
  ] as const;
  for (const [i, kind] of kinds.entries()) calls.add(CLIENT, NOW + i, ago(0, "lost", { kind, why: kind }));
  const of = (kind: Parameters<typeof calls.all>[0]) => calls.all(kind, [], NOW + 9).map(({ why }) => why);
  expect(of("lock")).toEqual(["multi", "fair"]);
  expect(of("readWrite")).toEqual(["multi", "write"]);
  expect(of("semaphore")).toEqual(["multi", "semaphore"]);
  expect(of("election")).toEqual(["multi", "election"]);
  expect(of("remember")).toEqual(["multi", "remember"]);
  expect(of("redisson")).toEqual(["multi", "redissonFenced"]);
  calls.add(CLIENT, NOW + 10, ago(0, "holds", { kind: "semaphore", token: null, lease: 9_000 }));
  expect(calls.of("semaphore", holder(null))).toMatchObject({ lease: 9_000 });
  expect(calls.of("lock", holder(4_711))).toBeNull();
});

it("of many calls the latest are kept, and losses for longer than others", () => {
  const calls = new ReportedCalls();
  for (let i = 0; i < 5; i++) calls.add(CLIENT, NOW + i, ago(0, "lost"));
  for (let i = 5; i < 500; i++) calls.add(CLIENT, NOW + i, ago(0, "released"));
  expect(calls.losses).toBe(5);
  expect(calls.all("lock", [], NOW + 500)).toHaveLength(50);
  expect(calls.lost("lock", NOW + 500)).toMatchObject({ ago: 496 });
  for (let i = 500; i < 600; i++) calls.add(CLIENT, NOW + i, ago(0, "lost"));
  calls.add(CLIENT, NOW + 600, ago(0, "released"));
  const all = calls.all("lock", [], NOW + 600);
  expect(all).toHaveLength(50);
  expect(all[0]).toMatchObject({ how: "released" });
  calls.forget(NOW + 600);
  expect(calls.all("lock", [], NOW + 600)).toHaveLength(1);
  calls.forget(NOW + 601);
  expect(calls.isEmpty).toBe(true);
});

import { describe, expect, it } from "vitest";
import { excerpt } from "./checker/excerpt.ts";
import { check } from "./checker/index.ts";
import type { Event, Told } from "./history/events.ts";

// Small histories, in ms; every rule finds what breaks it, and nothing else.

type Line = [at: number, by: string, told: Told];

const ask = (call: number, wait: number | null = null): Told => ({
  is: "ask",
  call,
  lock: "orders",
  kind: "lock",
  wait,
  how: "lock",
});
const lease = (call: number, token: number, left = 10_000): Told => ({ is: "lease", call, token, left });
const unlock = (call: number): Told => ({ is: "unlock", call, held: true });
const unlocked = (call: number): Told => ({ is: "unlocked", call, error: null });
/** Asks at 0 and holds from `from` to `to`. */
const held = (by: string, token: number, from: number, to: number, call = 1): Line[] => [
  [0, by, ask(call)],
  [from, by, lease(call, token)],
  [to, by, unlock(call)],
  [to + 1, by, unlocked(call)],
];
const dead = (victim: string, meant = true): Told => ({ is: "dead", victim, meant, how: "killed" });
const forgot = (since: number, from: number, to: number): Told => ({
  is: "forgot",
  since: since * 1_000,
  from,
  to,
  what: "test",
});

function history(...lines: Line[]): Event[] {
  const events = lines.map(([at, by, told]) => ({ at: at * 1_000, by, ...told }) as Event);
  return events.sort((one, other) => one.at - other.at);
}
const broken = (...lines: Line[]): string[] => check(history(...lines)).map(({ rule }) => rule);

describe("one holder", () => {
  it("is content with holds one after the other", () => {
    expect(broken(...held("1.1", 100, 10, 20), ...held("2.1", 200, 20, 30))).toEqual([]);
  });

  it("finds two who hold at the same time, also in one process", () => {
    expect(broken(...held("1.1", 100, 10, 20), ...held("2.1", 200, 19, 30))).toEqual(["one holder"]);
    expect(broken(...held("1.1", 100, 10, 20), ...held("1.1", 200, 19, 30, 2))).toEqual(["one holder"]);
  });

  it("finds a short hold within a long one, behind another short one", () => {
    const long = held("1.1", 100, 10, 90);
    expect(broken(...long, ...held("2.1", 200, 20, 30), ...held("3.1", 300, 40, 50))).toEqual([
      "one holder",
      "one holder",
    ]);
  });

  it("counts a silent holder until its deadline, with what renewals added", () => {
    const silent: Line[] = [
      [0, "1.1", ask(1)],
      [10, "1.1", lease(1, 100, 50)],
    ];
    const end: Line = [200, "1.1", unlock(1)];
    const late: Line = [201, "1.1", unlocked(1)];
    const renewed: Line = [40, "1.1", { is: "seen", call: 1, after: "a while", held: true, left: 50 }];
    expect(
      broken(
        ...silent,
        [70, "1.1", { is: "lost", call: 1, reason: "expired" }],
        late,
        ...held("2.1", 200, 61, 70),
      ),
    ).toEqual([]);
    expect(broken(...silent, renewed, ...held("2.1", 200, 61, 70), late)).toEqual(["one holder"]);
    expect(broken(...silent, end, late, ...held("2.1", 200, 61, 70))).toEqual(["one holder"]); // the holder still had it at 200
  });

  it("counts a holder no longer when it is dead, was told of its loss, or saw it", () => {
    const holder: Line[] = [
      [0, "1.1", ask(1)],
      [10, "1.1", lease(1, 100)],
    ];
    const next = held("2.1", 200, 30, 40);
    expect(broken(...holder, [29, "director", dead("1.1")], ...next)).toEqual([]);
    expect(broken(...holder, [29, "1.1", { is: "lost", call: 1, reason: "x" }], ...next)).toEqual([]);
    expect(
      broken(
        ...holder,
        [29, "1.1", { is: "seen", call: 1, after: "a while", held: false, left: 0 }],
        ...next,
      ),
    ).toEqual([]);
    expect(broken(...holder, ...next)).toEqual(["one holder"]);
  });

  it("excuses a hold from before and one from after the data was lost, and no others", () => {
    const lost: Line = [20, "director", forgot(18, 150, 160)];
    const [before, after] = [held("1.1", 100, 10, 50), held("2.1", 200, 30, 40)];
    expect(broken(...before, lost, ...after)).toEqual([]);
    expect(broken(...before, lost, ...held("2.1", 140, 30, 40))).toEqual(["one holder"]); // granted before, too
    expect(broken(lost, ...held("1.1", 170, 25, 50), ...after)).toEqual(["one holder"]); // both after
  });
});

describe("a hold from before a loss that its process passes on", () => {
  const loss: Line = [20, "director", forgot(18, 150, 160)];
  const asksLate = (token: number, from: number): Line[] => [
    [from - 1, "1.1", ask(2)],
    [from, "1.1", lease(2, token)],
    [from + 5, "1.1", unlock(2)],
    [from + 6, "1.1", unlocked(2)],
  ];
  const passed = (from: number): Line[] => [
    ...held("1.1", 100, 10, 15),
    loss,
    ...held("2.1", 200, 30, 900),
    ...asksLate(101, from),
  ];

  it("may begin a turn for a moment, and not later", () => {
    expect(broken(...passed(110))).toEqual([]);
    expect(broken(...passed(800))).toEqual(["one holder", "growing tokens"]);
  });

  it("is forgiven the time in which the process stood still", () => {
    const stopped: Line[] = [
      [25, "director", { is: "stopped", victim: "1.1" }],
      [790, "director", { is: "continued", victim: "1.1" }],
    ];
    expect(broken(...passed(800), ...stopped)).toEqual([]);
  });
});

describe("growing tokens", () => {
  it("finds one that falls, and one that comes twice", () => {
    expect(broken(...held("1.1", 200, 10, 20), ...held("2.1", 100, 30, 40))).toEqual(["growing tokens"]);
    expect(broken(...held("1.1", 200, 10, 20), ...held("2.1", 200, 30, 40))).toEqual(["growing tokens"]);
  });

  it("knows that a lease is no turn that was over when its process wrote it down", () => {
    const late = (left: number): Line[] => [
      [0, "2.1", ask(1)],
      [30, "2.1", lease(1, 100, left)],
      [31, "2.1", { is: "unlock", call: 1, held: left > 0 }],
      [32, "2.1", unlocked(1)],
    ];
    expect(broken(...held("1.1", 200, 10, 20), ...late(0))).toEqual([]);
    expect(broken(...held("1.1", 200, 10, 20), ...late(5))).toEqual(["growing tokens"]);
  });

  it("lets a hold from before a loss come late, but a caller that asks afterwards gets a larger token", () => {
    const lost: Line = [20, "director", forgot(18, 150, 160)];
    expect(broken(lost, ...held("1.1", 200, 25, 26), ...held("2.1", 140, 27, 28))).toEqual([]);
    const asksLate: Line[] = [
      [30, "2.1", ask(1)],
      [35, "2.1", lease(1, 140)],
      [36, "2.1", unlock(1)],
      [37, "2.1", unlocked(1)],
    ];
    expect(broken(lost, ...held("1.1", 200, 25, 26), ...asksLate)).toEqual(["growing tokens"]);
  });
});

describe("endings", () => {
  const over = (at: number): Line => [at, "director", { is: "over" }];

  it("finds a call without an answer, and excuses the dead", () => {
    expect(broken([0, "1.1", ask(1)], over(10_000))).toEqual(["every call ends"]);
    expect(broken([0, "1.1", ask(1)], [5, "director", dead("1.1")], over(10_000))).toEqual([]);
  });

  it("finds an answer that is too late, and forgives the time in which the process stood still", () => {
    const late: Line[] = [
      [0, "1.1", ask(1, 1_000)],
      [6_000, "1.1", { is: "busy", call: 1 }],
    ];
    expect(broken(...late)).toEqual(["answers in time"]);
    const stopped: Line[] = [
      [500, "director", { is: "stopped", victim: "1.1" }],
      [3_000, "director", { is: "continued", victim: "1.1" }],
    ];
    expect(broken(...late, ...stopped)).toEqual([]);
    expect(broken([0, "1.1", ask(1)], [9, "1.1", { is: "abort", call: 1 }], over(8_000))).toEqual([
      "answers in time",
    ]);
  });

  it("finds an unlock without an end", () => {
    const unended = held("1.1", 100, 10, 20).slice(0, 3);
    expect(broken(...unended, over(5_000))).toEqual(["every unlock ends"]);
  });

  it("finds who waits too long while nothing is wrong, and only then", () => {
    const long: Line[] = [
      [0, "1.1", ask(1)],
      [16_000, "1.1", lease(1, 1)],
      [16_001, "1.1", unlock(1)],
      [16_002, "1.1", unlocked(1)],
    ];
    expect(broken(...long)).toEqual(["nobody starves"]);
    const fault: Line[] = [
      [5_000, "director", { is: "fault", number: 1, kind: "cut", detail: "" }],
      [5_100, "director", { is: "healed", number: 1, kind: "cut" }],
    ];
    expect(broken(...long, ...fault)).toEqual([]);
  });

  it("finds a loss that nothing explains", () => {
    const loss: Line = [15, "1.1", { is: "lost", call: 1, reason: "LOCK_LOST taken" }];
    expect(broken(...held("1.1", 100, 10, 20), loss)).toEqual(["no loss without a reason"]);
    const fault: Line = [12, "director", { is: "fault", number: 1, kind: "cut", detail: "" }];
    expect(broken(...held("1.1", 100, 10, 20), fault, loss)).toEqual([]);
  });

  it("finds what nobody handled, and a worker that ends by itself", () => {
    expect(broken([1, "1.1", { is: "unhandled", error: "Error: x" }])).toEqual(["quiet processes"]);
    expect(broken([1, "1.1", { is: "up", settings: "" }], [2, "director", dead("1.1", false)])).toEqual([
      "living processes",
    ]);
  });
});

describe("the excerpt", () => {
  it("shows who took part, and what happened between", () => {
    const events = history(...held("1.1", 100, 10, 20), ...held("2.1", 200, 15, 30), [
      12,
      "director",
      { is: "fault", number: 1, kind: "cut connections", detail: "1.1's all" },
    ]);
    const [violation] = check(events);
    const text = violation ? excerpt(violation, events) : "";
    expect(text).toMatch(/^ONE HOLDER: two holders of orders for 5\.000 ms/);
    expect(text).toMatch(/^> +-5\.000 {2}1\.1#1 +lease +token=100/m);
    expect(text).toMatch(/^ +-3\.000 {2}director +fault +number=1 kind=cut connections/m);
    expect(text).toMatch(/^> +0\.000 {2}2\.1#1 +lease +token=200/m);
  });
});

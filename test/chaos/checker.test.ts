import { describe, expect, it } from "vitest";
import {
  asks,
  breaks,
  dead,
  fault,
  forgot,
  type Held,
  held,
  history,
  isSound,
  type Line,
  lost,
  seen,
  stopped,
} from "./by-hand.ts";
import { register } from "./checker/exclusion.ts";
import { check } from "./checker/index.ts";
import { tellStory } from "./checker/tell-story.ts";
import { excerpt } from "./checker/violation.ts";
import type { LockKind } from "./history/events.ts";

// Every rule finds what breaks it, and nothing else.

const locks = (by: string, token: number, time: readonly [number, number], more?: Held): Line[] =>
  held(by, "lock", token, time, more);

describe("one holder", () => {
  it("accepts holds that follow each other", () => {
    isSound(...locks("1.1", 100, [10, 20]), ...locks("2.1", 200, [20, 30]));
  });

  it("finds two holders at the same time, also in one process", () => {
    breaks("one holder", ...locks("1.1", 100, [10, 20]), ...locks("2.1", 200, [19, 30]));
    breaks("one holder", ...locks("1.1", 100, [10, 20]), ...locks("1.1", 200, [19, 30], { call: 2 }));
  });

  it("finds a short hold inside a long one, after another short one", () => {
    const shorts = [...locks("2.1", 200, [20, 30]), ...locks("3.1", 300, [40, 50])];
    breaks(["one holder", "one holder"], ...locks("1.1", 100, [10, 90]), ...shorts);
  });

  it("names all simultaneous holders", () => {
    const three = [1, 2, 3].flatMap((one) => locks(`${one}.1`, 100 * one, [10 * one, 50]));
    expect(check(history(...three)).map(({ what }) => what)).toEqual([
      "two holders of it for 30.000 ms: 1.1#1 with token 100 and 2.1#1 with token 200",
      "3 holders of it for 20.000 ms: 1.1#1 with token 100 and 2.1#1 with token 200 and 3.1#1 with token 300",
    ]);
  });

  it("counts a silent holder until its deadline, including renewals", () => {
    const [ask, lease, unlock, unlocked] = locks("1.1", 100, [10, 200], { left: 50 }) as [
      Line,
      Line,
      Line,
      Line,
    ];
    const next = locks("2.1", 200, [61, 70]);
    isSound(ask, lease, lost(70, "1.1", "expired"), unlocked, ...next);
    breaks("one holder", ask, lease, seen(40, "1.1", true, 50), ...next, unlocked);
    breaks("one holder", ask, lease, unlock, unlocked, ...next); // the holder still had it at 200
  });

  it("stops counting a holder that is dead, was notified of its loss, or noticed it", () => {
    const holder = [...locks("1.1", 100, [10, 90]).slice(0, 2), ...locks("2.1", 200, [30, 40])];
    for (const end of [dead(29, "1.1"), lost(29, "1.1", "x"), seen(29, "1.1", false)])
      isSound(...holder, end);
    breaks("one holder", ...holder);
  });

  it("excuses only overlaps of a hold from before a data loss with one from after it", () => {
    const loss = forgot(20, 18, [150, 160]);
    const [before, after] = [locks("1.1", 100, [10, 50]), locks("2.1", 200, [30, 40])];
    isSound(...before, loss, ...after);
    breaks("one holder", ...before, loss, ...locks("2.1", 140, [30, 40])); // granted before, too
    breaks("one holder", loss, ...locks("1.1", 170, [25, 50]), ...after); // both after
  });
});

describe("a hold from before a data loss that its process hands off locally", () => {
  const passed = (from: number): Line[] => [
    ...locks("1.1", 100, [10, 15]),
    forgot(20, 18, [150, 160]),
    ...locks("2.1", 200, [30, 900]),
    ...locks("1.1", 101, [from, from + 5], { call: 2, at: from - 1 }),
  ];

  it("may begin a turn shortly after the loss, and not later", () => {
    isSound(...passed(110));
    breaks(["one holder", "growing tokens"], ...passed(800));
  });

  it("may have been had by a call for several locks that got none", () => {
    const several: Line[] = [
      asks(5, "1.1", { call: 3, kind: "multiLock" }),
      [110, "1.1", { is: "busy", call: 3 }],
    ];
    const [, , , , ...rest] = passed(110);
    breaks(["one holder", "growing tokens"], ...rest);
    isSound(...several, ...rest);
  });

  it("is forgiven the time for which the process was stopped", () => {
    isSound(...passed(800), ...stopped(25, 790, "1.1"));
  });
});

describe("the monotonic register: claims on one clock, regardless of tokens and deadlines", () => {
  /** Claims at these times; asks at the first of them. */
  function claims(by: string, times: readonly number[], kind: LockKind = "lock", units?: number): Line[] {
    const [first = 0, ...rest] = times;
    const last = rest.pop() ?? first;
    return [
      asks(first, by, { kind, units }),
      [first, by, { is: "lease", call: 1, token: 5, left: 1, held: true }],
      ...rest.map((at) => seen(at, by, true, 1)),
      [last, by, { is: "unlock", call: 1, held: true }],
    ];
  }
  const found = (...lines: Line[]): string[] =>
    register(tellStory(history(...lines))).map(({ what }) => what);

  it("finds nothing in claims that follow each other, also within the same microsecond", () => {
    expect(found(...claims("1.1", [10, 20]), ...claims("2.1", [20, 30]))).toEqual([]);
  });

  it("reports overlapping claims with both periods", () => {
    expect(found(...claims("1.1", [10, 20]), ...claims("2.1", [19, 30]))).toEqual([
      "claims of it overlap for 1.000 ms on the monotonic clock, in µs: 1.1#1 from 10000 to 20000, 2.1#1 from 19000 to 30000",
    ]);
    expect(found(...claims("1.1", [10, 15, 20]), ...claims("2.1", [12]))).toHaveLength(1);
  });

  it("counts a claim from the first to the last moment at which the lease said 'held'", () => {
    const silent: Line[] = claims("1.1", [10, 20]).map(([at, by, told]) =>
      told.is === "unlock" ? [at, by, { ...told, held: false }] : [at, by, told],
    );
    expect(found(...silent, ...claims("2.1", [15, 30]))).toEqual([]);
    const renewed: Line = [18, "1.1", { is: "seen", call: 1, after: "a renewal", held: true, left: 10_000 }];
    expect(found(...silent, renewed, ...claims("2.1", [15, 30]))).toEqual([]);
  });

  it("lets claims overlap after a server has forgotten them, until their leases are over", () => {
    const loss = forgot(15, 14);
    expect(found(...claims("1.1", [10, 40]), loss, ...claims("2.1", [30, 35]))).toEqual([]);
    expect(found(...claims("1.1", [10, 9_000]), loss, ...claims("2.1", [8_000, 8_500]))).toHaveLength(1);
  });

  it.each<[string, LockKind, number | undefined, LockKind, number | undefined, number]>([
    ["of readers overlap", "readLock", undefined, "readLock", undefined, 0],
    ["of a reader and a writer do not", "readLock", undefined, "writeLock", undefined, 1],
    ["of permits overlap up to their number", "permit", 2, "permit", 1, 0],
    ["of more permits do not", "permit", 2, "permit", 2, 1],
  ])("%s", (_, first, units, second, others, violations) => {
    const both = [...claims("1.1", [10, 30], first, units), ...claims("2.1", [20, 40], second, others)];
    expect(found(...both)).toHaveLength(violations);
  });
});

describe("growing tokens", () => {
  it("finds a token that falls, and one that repeats", () => {
    for (const token of [100, 200])
      breaks("growing tokens", ...locks("1.1", 200, [10, 20]), ...locks("2.1", token, [30, 40]));
  });

  it("ignores a lease that was over when its process recorded it", () => {
    const late = (left: number): Line[] => locks("2.1", 100, [30, 31], { left });
    isSound(...locks("1.1", 200, [10, 20]), ...late(0));
    breaks("growing tokens", ...locks("1.1", 200, [10, 20]), ...late(5));
  });

  it("lets a hold from before a data loss be recorded late, but a later request must get a larger token", () => {
    const lines = [forgot(20, 18, [150, 160]), ...locks("1.1", 200, [25, 26])];
    isSound(...lines, ...locks("2.1", 140, [27, 28]));
    breaks("growing tokens", ...lines, ...locks("2.1", 140, [35, 36], { at: 30 }));
  });
});

describe("endings", () => {
  const over = (at: number): Line => [at, "director", { is: "over" }];

  it("finds a call without an answer, and excuses dead processes", () => {
    breaks("every call ends", asks(0, "1.1"), over(10_000));
    isSound(asks(0, "1.1"), dead(5, "1.1"), over(10_000));
  });

  it("finds a late answer, and forgives the time for which the process was stopped", () => {
    const late: Line[] = [asks(0, "1.1", { wait: 1_000 }), [6_000, "1.1", { is: "busy", call: 1 }]];
    breaks("answers in time", ...late);
    isSound(...late, ...stopped(500, 3_000, "1.1"));
    breaks("answers in time", asks(0, "1.1"), [9, "1.1", { is: "abort", call: 1 }], over(8_000));
  });

  it("finds an unlock that never ends", () => {
    breaks("every unlock ends", ...locks("1.1", 100, [10, 20]).slice(0, 3), over(5_000));
  });

  it("finds a caller that waits too long, but only while no fault is active", () => {
    const long = locks("1.1", 1, [16_000, 16_001]);
    breaks("nobody starves", ...long);
    isSound(...long, fault(5_000, "cut"), [5_100, "director", { is: "healed", number: 1, kind: "cut" }]);
  });

  it("finds a loss without a cause", () => {
    const lines = [...locks("1.1", 100, [10, 20]), lost(15, "1.1", "LOCK_LOST taken")];
    breaks("no loss without a reason", ...lines);
    isSound(...lines, fault(12, "cut"));
  });

  it("finds unhandled rejections, and a worker that exits by itself", () => {
    breaks("quiet processes", [1, "1.1", { is: "unhandled", error: "Error: x" }]);
    breaks("living processes", [1, "1.1", { is: "up", settings: "" }], dead(2, "1.1", false));
  });
});

it("the excerpt shows which callers took part and what happened in between", () => {
  const both = [...locks("1.1", 100, [10, 20]), ...locks("2.1", 200, [15, 30])];
  const events = history(...both, fault(12, "cut connections"));
  const [violation] = check(events);
  const text = violation ? excerpt(violation, events) : "";
  expect(text).toMatch(/^ONE HOLDER: two holders of it for 5\.000 ms/);
  expect(text).toMatch(/^> +-5\.000 {2}1\.1#1 +lease +token=100/m);
  expect(text).toMatch(/^ +-3\.000 {2}director +fault +number=1 kind=cut connections/m);
  expect(text).toMatch(/^> +0\.000 {2}2\.1#1 +lease +token=200/m);
});

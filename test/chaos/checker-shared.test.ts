import { describe, it } from "vitest";
import {
  asks,
  breaks,
  dead,
  fault,
  forgot,
  type Held,
  held,
  isSound,
  type Line,
  lost,
  seen,
  stopped,
} from "./by-hand.ts";

// The same for what several share, and what one of many does.

type Time = readonly [number, number];

describe("readers and writers", () => {
  const read = (by: string, token: number, time: Time, more?: Held): Line[] =>
    held(by, "readLock", token, time, more);
  const write = (by: string, token: number, time: Time, more?: Held): Line[] =>
    held(by, "writeLock", token, time, more);

  it("may overlap only if all of them read", () => {
    const [reads, writes] = [read("1.1", 5, [10, 30]), write("1.1", 5, [10, 30])];
    isSound(...reads, ...read("2.1", 5, [20, 40]));
    breaks("one holder", ...reads, ...write("2.1", 6, [20, 40]));
    breaks("one holder", ...writes, ...read("2.1", 6, [20, 40]));
    breaks("one holder", ...writes, ...write("2.1", 6, [20, 40]));
  });

  it("have tokens that order writers before readers and readers before writers", () => {
    const phase = [...read("1.1", 5, [10, 20]), ...read("2.1", 5, [12, 20])];
    isSound(...phase, ...write("1.1", 6, [30, 40], { call: 2 }));
    breaks("growing tokens", ...phase, ...write("1.1", 5, [30, 40], { call: 2 }));
    breaks("growing tokens", ...write("3.1", 5, [1, 9]), ...phase);
    breaks("growing tokens", ...phase, ...read("3.1", 4, [15, 20]));
  });

  it("may reuse a writer's token only when that writer became a reader", () => {
    const lines = [
      ...write("1.1", 5, [10, 20]),
      ...read("1.1", 5, [20, 40], { call: 2, writer: 1 }),
      ...read("2.1", 5, [25, 40]),
    ];
    isSound(...lines);
    breaks("growing tokens", ...lines, ...write("3.1", 5, [50, 60]));
  });

  it("may join a phase from before a data loss, which a writer may not", () => {
    const before = [...read("1.1", 50, [5, 7]), ...write("2.1", 100, [10, 15]), forgot(20, 18, [150, 160])];
    isSound(...before, ...read("3.1", 50, [30, 40], { at: 25 }));
    breaks("growing tokens", ...before, ...write("3.1", 50, [30, 40], { at: 25 }));
  });

  it("may still be what a writer from before a data loss goes on as, which nothing else may", () => {
    const before = [...write("1.1", 50, [10, 1_000]), forgot(20, 18, [150, 160])];
    const lines = [...before, ...write("2.1", 170, [900, 1_100], { at: 800 })];
    const after = { at: 999, call: 2 };
    isSound(...lines, ...read("1.1", 50, [1_000, 1_050], { ...after, writer: 1 }));
    const broken = ["one holder", "growing tokens"];
    breaks(broken, ...lines, ...read("1.1", 50, [1_000, 1_050], after));
    breaks(broken, ...lines, ...write("1.1", 50, [1_000, 1_050], after));
  });

  it("may join a phase that began while servers were exchanged, which a writer may not", () => {
    const before = [forgot(40, 18, [150, 160]), ...read("1.1", 155, [25, 26])];
    isSound(...before, ...read("2.1", 152, [28, 30], { at: 27 }));
    breaks("growing tokens", ...before, ...write("2.1", 152, [28, 30], { at: 27 }));
    breaks("growing tokens", ...before, ...read("2.1", 149, [28, 30], { at: 27 }));
  });
});

describe("permits", () => {
  const take = (by: string, units: number, token: number, time: Time, more?: Held): Line[] =>
    held(by, "permit", token, time, { units, ...more });

  it("never exceed the limit", () => {
    const two = [...take("1.1", 1, 5, [10, 40]), ...take("2.1", 2, 6, [20, 40])];
    isSound(...two);
    isSound(...two, ...take("3.1", 1, 7, [40, 50]));
    breaks("enough permits", ...two, ...take("3.1", 1, 7, [39, 50]));
  });

  it("have tokens, which holders may receive in a different order", () => {
    const first = take("1.1", 1, 6, [10, 40]);
    isSound(...first, ...take("2.1", 1, 5, [20, 40]));
    breaks("growing tokens", ...first, ...take("2.1", 1, 6, [20, 40]));
    breaks("growing tokens", ...first, ...take("2.1", 1, 5, [20, 40], { at: 15 }));
    // One that is passed on inside a process is of an earlier grant.
    const passed = [...take("1.1", 1, 5, [10, 20]), ...take("1.1", 1, 6, [20, 40], { at: 15, call: 2 })];
    isSound(...passed, ...take("2.1", 1, 9, [12, 40]));
  });

  it("are granted at once to a caller whose request fits, unless a fault is active", () => {
    const other = { call: 9, lock: "other", wait: 0 };
    // At first a process may not be connected.
    const soon = take("2.1", 2, 6, [1_400, 1_410]);
    isSound(...soon);
    breaks("what fits is given", ...soon, asks(1, "2.1", other), [2, "2.1", { is: "busy", call: 9 }]);
    const late = take("2.1", 2, 6, [3_000, 3_010]);
    const lines = [...take("1.1", 1, 5, [10, 2_500]), ...late];
    breaks("what fits is given", ...lines);
    isSound(...take("1.1", 2, 5, [10, 2_900]), ...late);
    isSound(fault(5, "cut connections"), ...lines);
    // Its process has said that it does not reach Redis; what another process says does not count.
    const refused = (by: string): Line[] => [
      asks(500, by, other),
      [2_400, by, { is: "failed", call: 9, error: "LOCK_UNAVAILABLE" }],
    ];
    isSound(...lines, ...refused("2.1"));
    breaks("what fits is given", ...lines, ...refused("3.1"));
  });

  it("may be as many as any limit in force since the oldest present holder came", () => {
    const set = (number: number, permits: number, [asked, answered]: [number, number | null]): Line[] => [
      [asked, "9.1", { is: "sets", set: number, lock: "it", permits }],
      ...(answered ? ([[answered, "9.1", { is: "has set", set: number, error: null }]] as Line[]) : []),
    ];
    const four = [1, 2].flatMap((one) => take(`${one}.1`, 2, one, [1_010 + one, 1_400], { at: 1_000 }));
    const raised = set(1, 4, [100, 110]);
    breaks("enough permits", ...four);
    isSound(...raised, ...four);
    breaks("enough permits", ...raised, ...set(2, 2, [200, 210]), ...four);
    // It may be in force still; it was when they came; it is once more, where the server has
    // forgotten the later one.
    isSound(...raised, ...set(2, 2, [200, null]), ...four);
    isSound(...raised, ...set(2, 2, [1_005, 1_006]), ...four);
    isSound(...raised, ...set(2, 2, [200, 210]), forgot(300, 290), ...four);
  });

  it("that a server has forgotten are granted again", () => {
    const lines = [
      ...take("1.1", 3, 100, [10, 50]),
      forgot(20, 18, [150, 160]),
      ...take("2.1", 3, 200, [30, 40]),
    ];
    isSound(...lines);
    breaks("enough permits", ...lines, ...take("3.1", 1, 201, [35, 40]));
  });
});

it("a leader is alone, and counts until it first sees its lease as lost", () => {
  const leads = [
    ...held("1.1", "election", 5, [10, 91], { left: 0, error: "LOCK_LOST expired" }),
    seen(30, "1.1", true),
    seen(90, "1.1", false),
  ];
  isSound(...leads, ...held("2.1", "election", 6, [31, 80]));
  breaks("one holder", ...leads, ...held("2.1", "election", 6, [29, 80]));
});

describe("a leader that leads again", () => {
  const leads = (by: string, call: number, again: number, token: number, [from, to]: Time) =>
    held(by, "election", token, [from, to], { at: from - 1, call, again, listens: true });
  const unheld = seen(20, "1.1", false);
  const told = lost(30, "1.1", "LOCK_LOST expired");

  it("receives its loss by its signal", () => {
    const body = leads("1.1", 1, 0, 5, [10, 3_000]);
    isSound(...body, unheld, told);
    breaks("signals tell losses", ...body, unheld);
    isSound(...leads("1.1", 1, 0, 5, [10, 500]), unheld);
    isSound(...body, unheld, ...stopped(15, 2_900, "1.1"));
  });

  it("runs no second body beside its own last one, and overlaps with another leader only briefly", () => {
    const first = [...leads("1.1", 1, 0, 5, [10, 3_000]), unheld, told];
    isSound(...first, ...leads("1.1", 2, 1, 6, [3_001, 3_010]));
    breaks("one body", ...first, ...leads("1.1", 2, 1, 6, [2_990, 3_010]));
    isSound(...first, ...leads("2.1", 1, 0, 6, [2_000, 4_000]));
    breaks("one leader", ...first, ...leads("2.1", 1, 0, 6, [1_000, 4_000]));
  });
});

describe("observers of a leader", () => {
  const shown = (at: number, token: number, number: number): Line => [
    at,
    "3.1",
    { is: "shown", lock: "it", token, number },
  ];
  const leads = held("1.1", "election", 5, [10, 100]);

  it("see terms and proclamations in order", () => {
    isSound(shown(20, 5, 1), shown(30, 5, 2), shown(40, 0, 0), shown(50, 6, 1));
    breaks("leaders in order", shown(20, 5, 2), shown(40, 0, 0), shown(50, 5, 1));
    breaks("leaders in order", shown(20, 6, 1), shown(30, 5, 1));
    isSound(shown(20, 6, 1), forgot(25, 24), shown(30, 5, 1));
  });

  it("see it no longer than its term, unless it is renewed", () => {
    const ends = shown(9_000, 0, 0);
    isSound(shown(20, 5, 1), shown(4_000, 0, 0), ...leads);
    breaks("leaders in time", shown(20, 5, 1), ends, ...leads);
    isSound(shown(20, 5, 1), ends, ...held("1.1", "election", 5, [10, 8_990]));
    const next = held("2.1", "election", 6, [200, 300], { at: 150 });
    breaks("leaders in time", shown(20, 5, 1), ends, ...leads.slice(0, 2), dead(90, "1.1"), ...next);
    isSound(shown(20, 5, 1), ends, ...leads, fault(10, "turn the clock back"));
  });
});

describe("a job that runs once per interval", () => {
  const ran = (by: string, begin: number, time: Time, more?: Held): Line[] =>
    held(by, "once", begin, time, { at: time[0] - 1, every: 400, ...more });
  const first = ran("1.1", 1_000, [10, 20]);

  it("begins once per interval, by the server's clock", () => {
    isSound(...first, ...ran("2.1", 1_400, [410, 420]));
    breaks("once per interval", ...first, ...ran("2.1", 1_399, [410, 420]));
  });

  it("begins once per slot when its intervals are aligned", () => {
    const aligned = true;
    isSound(...ran("1.1", 1_190, [10, 20], { aligned }), ...ran("2.1", 1_201, [25, 30]));
    breaks("once per interval", ...ran("1.1", 801, [10, 20], { aligned }), ...ran("2.1", 1_199, [410, 420]));
  });

  it("runs again after a run that failed or was forgotten", () => {
    const again = ran("2.1", 1_100, [110, 120]);
    isSound(...ran("1.1", 1_000, [10, 20], { error: "Error" }), ...again);
    isSound(...first.slice(0, 2), dead(15, "1.1"), ...again);
    isSound(...first, forgot(50, 45), ...again);
  });

  it("may overlap only with a run that the server has forgotten", () => {
    // The times of turns are ms, and what a server forgot is told in its µs.
    const both = [...ran("1.1", 1_000, [10, 60]), ...ran("2.1", 1_400, [50, 70])];
    const forgetting = (from: number, to: number): Line => forgot(45, 40, [from, to]);
    isSound(...both, forgetting(900_000, 1_300_000));
    breaks("one holder", ...both, forgetting(100_000, 900_000));
  });

  it("runs again in the next interval unless a fault is active", () => {
    const idle = (at: number): Line[] => [
      asks(at, "2.1", { call: at, kind: "once", wait: 5_000 }),
      [at + 1, "2.1", { is: "busy", call: at }],
    ];
    isSound(...first, ...idle(6_000));
    breaks("turns come again", ...first, ...idle(8_000));
  });
});

import { describe, expect, it } from "vitest";
import { check } from "./checker/index.ts";
import type { Event, LockKind, Told } from "./history/events.ts";

// The same for what several share, and what one of many does.

type Line = [at: number, by: string, told: Told];
type Asked = Partial<Extract<Told, { is: "ask" }>>;

interface Held extends Asked {
  /** When it asks; 0 when left out. */
  readonly at?: number;
  readonly error?: string;
}

/** Asks, and holds from `from` to `to`. */
function held(
  by: string,
  kind: LockKind,
  token: number,
  [from, to]: [number, number],
  held: Held = {},
): Line[] {
  const { at = 0, error = null, call = 1, ...more } = held;
  return [
    [at, by, { is: "ask", call, lock: "it", kind, wait: null, how: "", ...more }],
    [from, by, { is: "lease", call, token, left: 10_000 }],
    [to, by, { is: "unlock", call, held: true }],
    [to + 1, by, { is: "unlocked", call, error }],
  ];
}

const broken = (...lines: Line[]): string[] => {
  const events = lines.map(([at, by, told]) => ({ at: at * 1_000, by, ...told }) as Event);
  return check(events.sort((one, other) => one.at - other.at)).map(({ rule }) => rule);
};
const forgot = (since: number, from: number, to: number): Told => ({
  is: "forgot",
  since: since * 1_000,
  from,
  to,
  what: "test",
});
const fault = (kind: string): Told => ({ is: "fault", number: 1, kind, detail: "" });

describe("readers and writers", () => {
  const read = (by: string, token: number, time: [number, number], more?: Held): Line[] =>
    held(by, "readLock", token, time, more);
  const write = (by: string, token: number, time: [number, number], more?: Held): Line[] =>
    held(by, "writeLock", token, time, more);

  it("are inside together, if they read", () => {
    expect(broken(...read("1.1", 5, [10, 30]), ...read("2.1", 5, [20, 40]))).toEqual([]);
    expect(broken(...read("1.1", 5, [10, 30]), ...write("2.1", 6, [20, 40]))).toEqual(["one holder"]);
    expect(broken(...write("1.1", 5, [10, 30]), ...read("2.1", 6, [20, 40]))).toEqual(["one holder"]);
    expect(broken(...write("1.1", 5, [10, 30]), ...write("2.1", 6, [20, 40]))).toEqual(["one holder"]);
  });

  it("have tokens by which writers come before readers, and readers before writers", () => {
    const phase = [...read("1.1", 5, [10, 20]), ...read("2.1", 5, [12, 20])];
    expect(broken(...phase, ...write("1.1", 6, [30, 40], { call: 2 }))).toEqual([]);
    expect(broken(...phase, ...write("1.1", 5, [30, 40], { call: 2 }))).toEqual(["growing tokens"]);
    expect(broken(...write("3.1", 5, [1, 9]), ...phase)).toEqual(["growing tokens"]);
    expect(broken(...phase, ...read("3.1", 4, [15, 20]))).toEqual(["growing tokens"]);
  });

  it("go on with a token that a writer had only when that became a reader", () => {
    const lines = [
      ...write("1.1", 5, [10, 20]),
      ...read("1.1", 5, [20, 40], { call: 2, writer: 1 }),
      ...read("2.1", 5, [25, 40]),
    ];
    expect(broken(...lines)).toEqual([]);
    expect(broken(...lines, ...write("3.1", 5, [50, 60]))).toEqual(["growing tokens"]);
  });

  it("may find a phase from before a loss, and no writer may", () => {
    const lost: Line = [20, "director", forgot(18, 150, 160)];
    const before = [...read("1.1", 50, [5, 40]), ...write("2.1", 100, [10, 15])].filter(
      ([at, by]) => by !== "1.1" || at < 6,
    );
    const gone: Line[] = [
      [7, "1.1", { is: "unlock", call: 1, held: true }],
      [8, "1.1", { is: "unlocked", call: 1, error: null }],
    ];
    expect(broken(...before, ...gone, lost, ...read("3.1", 50, [30, 40], { at: 25 }))).toEqual([]);
    expect(broken(...before, ...gone, lost, ...write("3.1", 50, [30, 40], { at: 25 }))).toEqual([
      "growing tokens",
    ]);
  });

  it("may find a phase that began while servers were exchanged, and no writer may", () => {
    const lost: Line = [40, "director", forgot(18, 150, 160)];
    const old = read("1.1", 155, [25, 26]);
    expect(broken(lost, ...old, ...read("2.1", 152, [28, 30], { at: 27 }))).toEqual([]);
    expect(broken(lost, ...old, ...write("2.1", 152, [28, 30], { at: 27 }))).toEqual(["growing tokens"]);
    expect(broken(lost, ...old, ...read("2.1", 149, [28, 30], { at: 27 }))).toEqual(["growing tokens"]);
  });
});

describe("permits", () => {
  const take = (by: string, units: number, token: number, time: [number, number], more?: Held): Line[] =>
    held(by, "permit", token, time, { units, ...more });

  it("are not more than there are", () => {
    const two = [...take("1.1", 1, 5, [10, 40]), ...take("2.1", 2, 6, [20, 40])];
    expect(broken(...two)).toEqual([]);
    expect(broken(...two, ...take("3.1", 1, 7, [40, 50]))).toEqual([]);
    expect(broken(...two, ...take("3.1", 1, 7, [39, 50]))).toEqual(["enough permits"]);
  });

  it("have tokens, of which holders may hear in another order", () => {
    expect(broken(...take("1.1", 1, 6, [10, 40]), ...take("2.1", 1, 5, [20, 40]))).toEqual([]);
    expect(broken(...take("1.1", 1, 6, [10, 40]), ...take("2.1", 1, 6, [20, 40]))).toContain(
      "growing tokens",
    );
    expect(broken(...take("1.1", 1, 6, [10, 40]), ...take("2.1", 1, 5, [20, 40], { at: 15 }))).toEqual([
      "growing tokens",
    ]);
    // One that is passed on inside a process is of an earlier grant.
    const passed = [...take("1.1", 1, 5, [10, 20]), ...take("1.1", 1, 6, [20, 40], { at: 15, call: 2 })];
    expect(broken(...passed, ...take("2.1", 1, 9, [12, 40]))).toEqual([]);
  });

  it("are given at once to one that they suffice, unless something is wrong", () => {
    const late = take("2.1", 2, 6, [3_000, 3_010]);
    // At first a process may not be connected.
    const soon = take("2.1", 2, 6, [1_400, 1_410]);
    expect(broken(...soon)).toEqual([]);
    const answered: Line[] = [
      [1, "2.1", { is: "ask", call: 9, lock: "other", kind: "lock", wait: 0, how: "" }],
      [2, "2.1", { is: "busy", call: 9 }],
    ];
    expect(broken(...soon, ...answered)).toEqual(["what fits is given"]);
    expect(broken(...take("1.1", 1, 5, [10, 2_500]), ...late)).toEqual(["what fits is given"]);
    expect(broken(...take("1.1", 2, 5, [10, 2_900]), ...late)).toEqual([]);
    expect(
      broken([5, "director", fault("cut connections")], ...take("1.1", 1, 5, [10, 2_500]), ...late),
    ).toEqual([]);
    // Its process has said that it does not reach Redis; what another process says does not count.
    const refused = (by: string): Line[] => [
      [500, by, { is: "ask", call: 2, lock: "other", kind: "lock", wait: 0, how: "" }],
      [2_400, by, { is: "failed", call: 2, error: "LOCK_UNAVAILABLE" }],
    ];
    const held = take("1.1", 1, 5, [10, 2_500]);
    expect(broken(...held, ...late, ...refused("2.1"))).toEqual([]);
    expect(broken(...held, ...late, ...refused("3.1"))).toEqual(["what fits is given"]);
  });

  it("are as many as have been set since the first of those that are there came", () => {
    const set = (number: number, permits: number, [asked, answered]: [number, number | null]): Line[] => [
      [asked, "9.1", { is: "sets", set: number, lock: "it", permits }],
      ...(answered ? ([[answered, "9.1", { is: "has set", set: number, error: null }]] as Line[]) : []),
    ];
    const four = [
      ...take("1.1", 2, 5, [1_010, 1_400], { at: 1_000 }),
      ...take("2.1", 2, 6, [1_020, 1_400], { at: 1_000 }),
    ];
    const raised = set(1, 4, [100, 110]);
    expect(broken(...four)).toEqual(["enough permits"]);
    expect(broken(...raised, ...four)).toEqual([]);
    expect(broken(...raised, ...set(2, 2, [200, 210]), ...four)).toEqual(["enough permits"]);
    // It may be in force still; it was when they came; it is once more, where the server has forgotten the later one.
    expect(broken(...raised, ...set(2, 2, [200, null]), ...four)).toEqual([]);
    expect(broken(...raised, ...set(2, 2, [1_015, 1_016]), ...four)).toEqual([]);
    expect(
      broken(...raised, ...set(2, 2, [200, 210]), [300, "director", forgot(290, 1, 2)], ...four),
    ).toEqual([]);
  });

  it("that a server has forgotten are given once more", () => {
    const lost: Line = [20, "director", forgot(18, 150, 160)];
    const before = take("1.1", 3, 100, [10, 50]);
    expect(broken(...before, lost, ...take("2.1", 3, 200, [30, 40]))).toEqual([]);
    expect(
      broken(...before, lost, ...take("2.1", 3, 200, [30, 40]), ...take("3.1", 1, 201, [35, 40])),
    ).toEqual(["enough permits"]);
  });
});

describe("a leader", () => {
  it("is the only one, and counted on as long as it is seen", () => {
    const leads: Line[] = [
      [0, "1.1", { is: "ask", call: 1, lock: "it", kind: "election", wait: null, how: "" }],
      [10, "1.1", { is: "lease", call: 1, token: 5, left: 0 }],
      [30, "1.1", { is: "seen", call: 1, after: "a while", held: true, left: 0 }],
      [90, "1.1", { is: "seen", call: 1, after: "a while", held: false, left: 0 }],
      [91, "1.1", { is: "unlock", call: 1, held: false }],
      [92, "1.1", { is: "unlocked", call: 1, error: "LOCK_LOST expired" }],
    ];
    expect(broken(...leads, ...held("2.1", "election", 6, [31, 80]))).toEqual([]);
    expect(broken(...leads, ...held("2.1", "election", 6, [29, 80]))).toEqual(["one holder"]);
  });
});

describe("a leader that comes again", () => {
  const leads = (by: string, call: number, again: number, token: number, [from, to]: [number, number]) =>
    held(by, "election", token, [from, to], { at: from - 1, call, again, listens: true });
  const unheld: Line = [20, "1.1", { is: "seen", call: 1, after: "a while", held: false, left: 0 }];
  const told: Line = [30, "1.1", { is: "lost", call: 1, reason: "LOCK_LOST expired" }];

  it("is told of its loss by its signal", () => {
    const body = leads("1.1", 1, 0, 5, [10, 3_000]);
    expect(broken(...body, unheld, told)).toEqual([]);
    expect(broken(...body, unheld)).toEqual(["signals tell losses"]);
    expect(broken(...leads("1.1", 1, 0, 5, [10, 500]), unheld)).toEqual([]);
    const stopped: Line[] = [
      [15, "director", { is: "stopped", victim: "1.1" }],
      [2_900, "director", { is: "continued", victim: "1.1" }],
    ];
    expect(broken(...body, unheld, ...stopped)).toEqual([]);
  });

  it("runs no body beside its own last one, nor for long beside another's", () => {
    const first = [...leads("1.1", 1, 0, 5, [10, 3_000]), unheld, told];
    expect(broken(...first, ...leads("1.1", 2, 1, 6, [3_001, 3_010]))).toEqual([]);
    expect(broken(...first, ...leads("1.1", 2, 1, 6, [2_990, 3_010]))).toEqual(["one body"]);
    expect(broken(...first, ...leads("2.1", 1, 0, 6, [2_000, 4_000]))).toEqual([]);
    expect(broken(...first, ...leads("2.1", 1, 0, 6, [1_000, 4_000]))).toEqual(["one leader"]);
  });
});

describe("those that observe a leader", () => {
  const shown = (at: number, token: number, number: number): Line => [
    at,
    "3.1",
    { is: "shown", lock: "it", token, number },
  ];
  const leads = held("1.1", "election", 5, [10, 100]);

  it("see terms and proclamations in order", () => {
    expect(broken(shown(20, 5, 1), shown(30, 5, 2), shown(40, 0, 0), shown(50, 6, 1))).toEqual([]);
    expect(broken(shown(20, 5, 2), shown(40, 0, 0), shown(50, 5, 1))).toEqual(["leaders in order"]);
    expect(broken(shown(20, 6, 1), shown(30, 5, 1))).toEqual(["leaders in order"]);
    expect(broken(shown(20, 6, 1), [25, "director", forgot(24, 1, 2)], shown(30, 5, 1))).toEqual([]);
  });

  it("see it no longer than its term, unless it is renewed", () => {
    const ends = shown(9_000, 0, 0);
    expect(broken(shown(20, 5, 1), shown(4_000, 0, 0), ...leads)).toEqual([]);
    expect(broken(shown(20, 5, 1), ends, ...leads)).toEqual(["leaders in time"]);
    expect(broken(shown(20, 5, 1), ends, ...held("1.1", "election", 5, [10, 8_990]))).toEqual([]);
    const next = held("2.1", "election", 6, [200, 300], { at: 150 });
    const crash: Line = [90, "director", { is: "dead", victim: "1.1", meant: true, how: "killed" }];
    expect(broken(shown(20, 5, 1), ends, ...leads.slice(0, 2), crash, ...next)).toEqual(["leaders in time"]);
    expect(broken(shown(20, 5, 1), ends, ...leads, [10, "director", fault("turn the clock back")])).toEqual(
      [],
    );
  });
});

describe("what runs once per interval", () => {
  const every = 400;
  const ran = (by: string, begin: number, time: [number, number], more?: Held): Line[] =>
    held(by, "once", begin, time, { at: time[0] - 1, every, ...more });

  it("begins once in it, by the server's clock", () => {
    expect(broken(...ran("1.1", 1_000, [10, 20]), ...ran("2.1", 1_400, [410, 420]))).toEqual([]);
    expect(broken(...ran("1.1", 1_000, [10, 20]), ...ran("2.1", 1_399, [410, 420]))).toEqual([
      "once per interval",
    ]);
  });

  it("and where its times are slots, once in each", () => {
    const aligned = true;
    expect(broken(...ran("1.1", 1_190, [10, 20], { aligned }), ...ran("2.1", 1_201, [25, 30]))).toEqual([]);
    expect(broken(...ran("1.1", 801, [10, 20], { aligned }), ...ran("2.1", 1_199, [410, 420]))).toEqual([
      "once per interval",
    ]);
  });

  it("runs again when the one before has failed, or was forgotten", () => {
    const again = ran("2.1", 1_100, [110, 120]);
    expect(broken(...ran("1.1", 1_000, [10, 20], { error: "Error" }), ...again)).toEqual([]);
    const dead: Line = [15, "director", { is: "dead", victim: "1.1", meant: true, how: "killed" }];
    expect(broken(...ran("1.1", 1_000, [10, 20]).slice(0, 2), dead, ...again)).toEqual([]);
    expect(broken(...ran("1.1", 1_000, [10, 20]), [50, "director", forgot(45, 1, 2)], ...again)).toEqual([]);
  });

  it("may overlap with one that the server has forgotten, and with no other", () => {
    // The times of turns are ms, and what a server forgot is told in its µs.
    const both = [...ran("1.1", 1_000, [10, 60]), ...ran("2.1", 1_400, [50, 70])];
    const forgetting = (from: number, to: number): Line => [45, "director", forgot(40, from, to)];
    expect(broken(...both, forgetting(900_000, 1_300_000))).toEqual([]);
    expect(broken(...both, forgetting(100_000, 900_000))).toEqual(["one holder"]);
  });

  it("comes again while nothing is wrong", () => {
    const idle = (at: number): Line[] => [
      [at, "2.1", { is: "ask", call: at, lock: "it", kind: "once", wait: 5_000, how: "" }],
      [at + 1, "2.1", { is: "busy", call: at }],
    ];
    expect(broken(...ran("1.1", 1_000, [10, 20]), ...idle(6_000))).toEqual([]);
    expect(broken(...ran("1.1", 1_000, [10, 20]), ...idle(8_000))).toEqual(["turns come again"]);
  });
});

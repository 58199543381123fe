import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { BatchedTry } from "../../src/core/lock-kind.ts";
import type { AcquireRequest } from "../../src/core/waiting.ts";
import type { Terms } from "../../src/engine/lease/terms.ts";
import { Line, type LineHome, lastTryOf } from "../../src/engine/line.ts";
import { Waiter } from "../../src/engine/waiter.ts";
import { clocks } from "../../src/util/clock.ts";
import { Timers } from "../../src/util/timers.ts";

// The line of callers by itself: on a clock that the test puts on, with a client that notes what it is told.

const terms: Terms = { lease: 30_000, watchdog: true, maxHold: Number.POSITIVE_INFINITY, linger: 0 };
const batchedTry = (wait: number): BatchedTry => ({ dependsOn: null, hold: null, mayBeIdle: false, wait });

/** A client that notes what it is told. */
class NotingHome implements LineHome {
  readonly timers = new Timers(true);
  readonly asking: LineHome["asking"] = new Set();
  readonly commands = { replyTimeout: 5_000 };
  readonly told: string[] = [];
  waiting = 0;
  isSweeping = false;
  sweeps = 0;
  onBusy: (waiter: Waiter) => void = () => {};

  sweepSoon(): void {
    this.sweeps++;
    this.isSweeping = true;
  }

  tellWait(name: string, { call }: Waiter): void {
    this.told.push(`${call} waits for ${name}`);
  }

  gaveUp(name: string, waiter: Waiter, error: unknown): void {
    this.told.push(`${waiter.call} gave ${name} up: ${error === null ? "busy" : (error as Error).message}`);
    this.onBusy(waiter);
  }
}

const real = clocks.mono;
let time = 0;
let home: NotingHome;
let line: Line;
let late: number[];
let calls = 0;

beforeEach(() => {
  time = 10_000;
  clocks.mono = { now: () => time };
  home = new NotingHome();
  late = [];
  calls = 0;
  const group = {
    late: (waiter: Waiter) => {
      late.push(waiter.call);
    },
    leave: (waiter: Waiter, reason: unknown) => line.refuse(waiter, reason),
  };
  line = new Line("shop", home, group);
});

afterEach(() => {
  home.timers.close();
  clocks.mono = real;
});

/** A call that waits for so many ms, with what has become of it in `outcome`. */
function caller(wait: number, of: Partial<AcquireRequest> = {}): Waiter {
  const request = { terms, wait, signal: undefined, ...of };
  const settle = (value: unknown): void => {
    if (value instanceof Promise) value.catch(() => {});
  };
  return new Waiter({ call: ++calls, kind: "lock" }, request, 16, () => {}, settle);
}

/** Callers that come one after the other, with these waits. */
function come(asks: boolean, ...waits: number[]): Waiter[] {
  const all = waits.map((wait) => caller(wait));
  for (const one of all) line.add(one, asks);
  return all;
}

const order = (): number[] => Array.from(line, ({ call }) => call);
const unanswered = (): number[] => [...line].filter((one) => one.unanswered).map(({ call }) => call);

/** The same list, from its end. */
function backwards(): number[] {
  let last = line.first;
  while (last?.next) last = last.next;
  const found: number[] = [];
  for (let one = last; one; one = one.previous) found.push(one.call);
  return found;
}

describe("the order of a line", () => {
  it("is the order in which callers come", () => {
    come(false, 100, 200, 300);
    expect(order()).toEqual([1, 2, 3]);
    expect(backwards()).toEqual([3, 2, 1]);
    expect(line.first?.call).toBe(1);
  });

  it("stays when one leaves from the middle, the front and the end", () => {
    const [first, second, , fourth] = come(false, 1, 2, 3, 4) as [Waiter, Waiter, Waiter, Waiter];
    line.remove(second);
    expect([order(), backwards()]).toEqual([
      [1, 3, 4],
      [4, 3, 1],
    ]);
    line.remove(first);
    expect([order(), backwards()]).toEqual([
      [3, 4],
      [4, 3],
    ]);
    line.remove(fourth);
    expect([order(), backwards()]).toEqual([[3], [3]]);
    come(false, 5);
    expect([order(), backwards()]).toEqual([
      [3, 5],
      [5, 3],
    ]);
  });

  it("begins anew when all have left", () => {
    for (const one of come(false, 1, 2)) line.remove(one);
    expect(line.first).toBe(null);
    come(false, 3, 4);
    expect([order(), backwards()]).toEqual([
      [3, 4],
      [4, 3],
    ]);
  });

  it("has a caller in front again that is put back, also if it is alone", () => {
    const [first, second] = come(false, 1, 2) as [Waiter, Waiter];
    line.remove(first);
    line.putBack(first);
    expect([order(), backwards()]).toEqual([
      [1, 2],
      [2, 1],
    ]);
    line.remove(second);
    line.remove(first);
    line.putBack(first);
    come(false, 3);
    expect([order(), backwards()]).toEqual([
      [1, 3],
      [3, 1],
    ]);
  });

  it("has a caller in front that is put back from the end", () => {
    const [, second] = come(false, 1, 2) as [Waiter, Waiter];
    line.remove(second);
    line.putBack(second);
    expect(order()).toEqual([2, 1]);
    line.remove(second);
    expect([order(), backwards()]).toEqual([[1], [1]]);
  });

  it("continues for a walk along it while callers leave", () => {
    const seen: number[] = [];
    come(false, 1, 2, 3);
    for (const one of line) {
      seen.push(one.call);
      line.remove(one);
    }
    expect(seen).toEqual([1, 2, 3]);
  });
});

describe("what a line counts", () => {
  it("counts the callers that would wait, those without an answer, and all that wait in the client", () => {
    const [first] = come(true, 0, 100) as [Waiter];
    come(false, 100);
    expect([line.waiting, line.unanswered, home.waiting]).toEqual([2, 2, 3]);
    expect(home.asking.has(line)).toBe(true);
    line.remove(first);
    expect([line.waiting, line.unanswered, home.waiting]).toEqual([2, 1, 2]);
    for (const one of [...line]) line.remove(one);
    expect([line.waiting, line.unanswered, home.waiting]).toEqual([0, 0, 0]);
    expect(home.asking.has(line)).toBe(false);
  });

  it("is counted once for a caller that leaves twice", () => {
    const [first] = come(true, 100, 100) as [Waiter];
    line.remove(first);
    line.remove(first);
    expect([line.waiting, line.unanswered, home.waiting]).toEqual([1, 1, 1]);
  });

  it("is known to the client from the first without an answer to the last", () => {
    const [first] = come(true, 0) as [Waiter];
    expect(home.asking.has(line)).toBe(true);
    const [second] = come(true, 0) as [Waiter];
    line.remove(first);
    expect(home.asking.has(line)).toBe(true);
    line.remove(second);
    expect(home.asking.has(line)).toBe(false);
  });

  it("makes the client sweep for callers without an answer, once, and for the end of the last one", () => {
    const [first, second] = come(true, 1, 2) as [Waiter, Waiter];
    expect(home.sweeps).toBe(1);
    home.isSweeping = false;
    line.remove(first);
    expect(home.sweeps).toBe(1);
    line.remove(second);
    expect(home.sweeps).toBe(2);
    const [third] = come(true, 1) as [Waiter];
    expect(home.sweeps).toBe(2);
    line.remove(third);
    expect(home.sweeps).toBe(2);
  });

  it("excludes a waiting caller that has its time and its timer", () => {
    const [first] = come(false, 100) as [Waiter];
    expect([home.timers.size, home.timers.next]).toEqual([1, time + 100]);
    line.remove(first);
    expect(home.timers.size).toBe(0);
  });
});

describe("a caller that comes", () => {
  it("has its own time for its answer if that is long, but no longer than a command has", () => {
    come(true, 1_000, 60_000);
    expect(Array.from(line, (one) => one.until - time)).toEqual([1_000, 5_000]);
    expect(home.timers.size).toBe(0);
    expect(home.told).toEqual([]);
  });

  it("has half a second for its answer if it hardly waits", () => {
    come(true, 0, 499);
    expect(Array.from(line, (one) => one.until - time)).toEqual([500, 500]);
  });

  it("has the time of its multi-lock, if it is a part of one", () => {
    line.add(caller(0, { batchedTry: batchedTry(2_000) }), true);
    expect(line.first?.until).toBe(time + 2_000);
  });

  it("is reported as waiting at once, if no request is sent for it", () => {
    come(false, 100);
    expect(home.told).toEqual(["1 waits for shop"]);
    expect(line.unanswered).toBe(0);
  });

  it("is late when its wait is over", () => {
    come(false, 100, 50);
    time += 99;
    home.timers.look();
    expect(late).toEqual([2]);
    time++;
    home.timers.look();
    expect(late).toEqual([2, 1]);
  });
});

describe("callers that are answered with busy", () => {
  it("are those that would not wait; the others wait on", () => {
    come(true, 0, 100, 0);
    line.tellBusy();
    expect(order()).toEqual([2]);
    expect(home.told).toEqual(["1 gave shop up: busy", "2 waits for shop", "3 gave shop up: busy"]);
    expect(line.unanswered).toBe(0);
    expect(home.timers.next).toBe(time + 100);
  });

  it("are those whose wait is over by now", () => {
    come(true, 10);
    time += 10;
    line.tellBusy();
    expect(order()).toEqual([]);
  });

  it("are not those that would not wait and have come since Redis was asked", () => {
    come(true, 0, 100);
    const asked = time;
    time++;
    come(true, 0, 100);
    line.tellBusy(asked);
    expect(order()).toEqual([2, 3, 4]);
    expect(unanswered()).toEqual([3]);
  });

  it("are those that have come at the same moment as the request", () => {
    come(true, 0);
    line.tellBusy(time);
    expect(order()).toEqual([]);
  });

  it("are each answered once, also if a listener calls, and makes another one leave", () => {
    const [, second] = come(true, 0, 100, 0) as [Waiter, Waiter];
    home.onBusy = ({ call }) => {
      if (call !== 1) return;
      line.remove(second);
      come(true, 0, 100);
    };
    line.tellBusy();
    expect(order()).toEqual([5]);
    expect(line.unanswered).toBe(0);
    expect(home.told).toEqual([
      "1 gave shop up: busy",
      "3 gave shop up: busy",
      "4 gave shop up: busy",
      "5 waits for shop",
    ]);
  });

  it("get nothing more if all have their answers", () => {
    come(false, 100);
    home.told.length = 0;
    time += 200;
    line.tellBusy();
    expect(order()).toEqual([1]);
    expect(home.told).toEqual([]);
  });

  it("get nothing if they were given the lock before", () => {
    const [first] = come(true, 0) as [Waiter];
    first.give(null);
    line.give(first);
    line.refuse(first, new Error("late"));
    expect(home.told).toEqual([]);
    expect(order()).toEqual([]);
  });
});

describe("callers that are refused", () => {
  const refuse = (which?: "all" | "unanswered" | "hasty"): void =>
    line.refuseAll(() => new Error("no answer"), which);

  it("are all of them", () => {
    come(true, 0, 100);
    come(false, 100);
    refuse();
    expect(order()).toEqual([]);
    expect(home.told).toContain("3 gave shop up: no answer");
  });

  it("are only those without an answer", () => {
    come(false, 100);
    come(true, 0, 100);
    come(false, 100);
    refuse("unanswered");
    expect(order()).toEqual([1, 4]);
  });

  it("are only those without an answer whose wait is over", () => {
    come(false, 0);
    come(true, 0, 100, 0);
    refuse("hasty");
    expect(order()).toEqual([1, 3]);
  });

  it("are only those that would not wait by the time of the next request for them", () => {
    come(true, 100);
    come(false, 10);
    expect(line.hasDeadlineBefore(time + 99)).toBe(false);
    expect(line.hasDeadlineBefore(time + 100)).toBe(true);
  });
});

describe("a sweep", () => {
  it("ends those whose answer is late, and no others", () => {
    come(true, 600, 0);
    come(false, 100);
    line.sweep(time + 499);
    expect(late).toEqual([]);
    line.sweep(time + 500);
    expect(late).toEqual([2]);
    line.sweep(time + 600);
    expect(late).toEqual([2, 1, 2]);
  });

  it("finds those after some that have their answers", () => {
    const [, , third] = come(true, 100, 100, 0, 100) as [Waiter, Waiter, Waiter];
    time++;
    line.tellBusy();
    line.remove(third);
    come(true, 0);
    come(false, 100);
    come(true, 0);
    line.sweep(time + 1_000);
    expect(late).toEqual([5, 7]);
  });

  it("finds the next one when the first without an answer leaves", () => {
    const [first] = come(true, 0) as [Waiter];
    come(false, 100);
    come(true, 0);
    line.remove(first);
    line.sweep(time + 500);
    expect(late).toEqual([3]);
  });

  it("finds the next one also if it comes right after", () => {
    const [first] = come(true, 0, 0) as [Waiter];
    line.remove(first);
    line.sweep(time + 500);
    expect(late).toEqual([2]);
  });

  it("still finds the first one when a later one leaves", () => {
    const [, second] = come(true, 0, 0, 0) as [Waiter, Waiter];
    line.remove(second);
    line.sweep(time + 500);
    expect(late).toEqual([1, 3]);
  });

  it("comes later for callers that are requested once more", () => {
    come(true, 0, 1_000);
    time += 400;
    line.asksAgain();
    expect(Array.from(line, (one) => one.until - time)).toEqual([500, 1_000]);
  });
});

describe("a caller that is put back", () => {
  it("waits for the rest of its own time", () => {
    const [first] = come(true, 100) as [Waiter];
    line.remove(first);
    time += 30;
    line.putBack(first, true);
    expect([line.unanswered, home.timers.next - time, line.waiting, home.waiting]).toEqual([0, 70, 1, 1]);
    time += 70;
    home.timers.look();
    expect(late).toEqual([1]);
  });

  it("is answered by the following command if it would not wait, and the lock was its process's own", () => {
    const [first] = come(true, 0, 0) as [Waiter];
    line.remove(first);
    time += 700;
    line.putBack(first, true);
    expect(unanswered()).toEqual([1, 2]);
    expect(home.timers.size).toBe(0);
    expect(first.until).toBe(time + 500);
    line.sweep(time);
    expect(late).toEqual([2]);
    line.tellBusy();
    expect(order()).toEqual([]);
  });

  it("ends by its time if the lock was not its process's own", () => {
    const [first] = come(true, 0) as [Waiter];
    line.remove(first);
    line.putBack(first);
    expect(line.unanswered).toBe(0);
    home.timers.look();
    expect(late).toEqual([1]);
  });
});

describe("a caller whose time is up, without a word from Redis", () => {
  it("asks after all others, with the time of a first command", () => {
    const [first] = come(false, 100, 1_000) as [Waiter];
    time += 100;
    line.asksLast(first);
    expect(order()).toEqual([2, 1]);
    expect(unanswered()).toEqual([1]);
    expect(first.until).toBe(time + 500);
    expect(home.timers.size).toBe(1);
  });

  it("would not wait any more, if it only asked", () => {
    const asking = caller(0);
    line.joinQuestion(asking);
    expect(line.waiting).toBe(1);
    line.asksLast(asking);
    expect([asking.isAsking, asking.wait, line.waiting]).toEqual([false, 0, 0]);
  });

  it("keeps its wait, if it waited", () => {
    const [first] = come(false, 100) as [Waiter];
    line.asksLast(first);
    expect(first.wait).toBe(100);
  });
});

describe("callers that would not wait, and ask a holder that may be idle", () => {
  it("get half a second for the subscription", () => {
    const [first, second] = come(true, 0, 100) as [Waiter, Waiter];
    time += 3;
    line.onHeld(true, false, false);
    expect([first.isAsking, first.wait, second.isAsking, second.wait]).toEqual([true, 503, false, 100]);
    expect(line.waiting).toBe(2);
    line.tellBusy();
    expect(home.told).toEqual(["2 waits for shop"]);
    expect(order()).toEqual([1, 2]);
  });

  it("get 50 ms if the request comes next", () => {
    const [first] = come(true, 0) as [Waiter];
    line.onHeld(true, false, true);
    expect(first.wait).toBe(50);
  });

  it("get no time as parts of a multi-lock, whose call learns that the holder may be idle", () => {
    const part = batchedTry(2_000);
    const waiter = caller(0, { batchedTry: part });
    line.add(waiter, true);
    line.onHeld(true, false, true);
    expect([part.mayBeIdle, waiter.isAsking, waiter.wait, line.waiting]).toEqual([true, false, 0, 0]);
  });

  it("have 50 ms from the request on, up to the first that waits", () => {
    const [first] = come(true, 0) as [Waiter];
    line.onHeld(true, false, false);
    line.tellBusy();
    come(false, 400);
    line.joinQuestion(caller(0));
    time += 200;
    line.onHeld(true, true, true);
    expect([first.deadline, home.timers.next]).toEqual([time + 50, time - 150]);
    expect(first.at).toBe(time + 50);
  });

  it("share a request under way, without announcing a wait", () => {
    come(false, 100);
    home.told.length = 0;
    time += 1;
    const asking = caller(0);
    time += 2;
    line.joinQuestion(asking);
    expect([asking.isAsking, asking.deadline - time, asking.unanswered]).toEqual([true, 50, false]);
    expect(home.told).toEqual([]);
    expect(home.timers.size).toBe(2);
  });

  it("are answered when a caller is inside, up to the first that waits", () => {
    line.joinQuestion(caller(0));
    line.joinQuestion(caller(0));
    come(false, 100);
    line.joinQuestion(caller(0));
    line.onHeld(false, true, true);
    expect(order()).toEqual([3, 4]);
    line.stopAsking();
    expect(order()).toEqual([3, 4]);
  });

  it("are all of the line, or not", () => {
    expect(line.isAskingOnly).toBe(true);
    line.joinQuestion(caller(0));
    expect(line.isAskingOnly).toBe(true);
    come(false, 100);
    expect(line.isAskingOnly).toBe(false);
  });
});

describe("the last try", () => {
  it("comes 5 ms before a caller's time is up", () => {
    const [first] = come(false, 100) as [Waiter];
    expect(lastTryOf(first)).toBe(first.deadline - 5);
    expect(line.lastTry).toBe(lastTryOf(first));
  });

  it("is that of the caller whose time is up first, and never one that is over", () => {
    come(false, 300, 60, 200);
    const began = time;
    expect(line.lastTry).toBe(began + 55);
    time = began + 55;
    expect(line.lastTry).toBe(began + 195);
    time = began + 195;
    expect(line.lastTry).toBe(began + 295);
    time = began + 295;
    expect(line.lastTry).toBe(Number.POSITIVE_INFINITY);
  });

  it("moves with callers that come and go", () => {
    expect(line.lastTry).toBe(Number.POSITIVE_INFINITY);
    const [first] = come(false, 300) as [Waiter];
    expect(line.lastTry).toBe(time + 295);
    const [second] = come(false, 200) as [Waiter];
    expect(line.lastTry).toBe(time + 195);
    come(false, 400);
    expect(line.lastTry).toBe(time + 195);
    line.remove(second);
    expect(line.lastTry).toBe(time + 295);
    line.remove(first);
    expect(line.lastTry).toBe(time + 395);
    line.putBack(second);
    expect(line.lastTry).toBe(time + 195);
  });

  it("is not moved by callers that would not wait", () => {
    come(false, 300);
    expect(line.lastTry).toBe(time + 295);
    come(true, 0, 5);
    expect(line.lastTry).toBe(time + 295);
  });
});

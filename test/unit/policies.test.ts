import { describe, expect, it } from "vitest";
import { fits, isTooLong, ttlFor } from "../../src/core/fits.ts";
import { Hold } from "../../src/core/lease/hold.ts";
import type { Terms } from "../../src/core/lease/terms.ts";
import { isStillNext, next, type Possession } from "../../src/core/next.ts";
import * as permitRules from "../../src/core/permits.ts";
import * as shared from "../../src/core/reads.ts";

// What the policies decide, one row for each decision. Times are ms on clocks that stand still.

const MONO = 10_000;
const WALL = 50_000;
const WINDOW = 3_000;

const renewed: Terms = { lease: 30_000, watchdog: true, maxHold: Number.POSITIVE_INFINITY, linger: 0 };
const lingering: Terms = { ...renewed, linger: 1_000 };
const explicit = (lease: number): Terms => ({ ...renewed, lease, watchdog: false });
const permits = (units: number, of: number | null = 10, terms = renewed): Terms => ({
  ...terms,
  permits: { units, of },
});

/** A hold that has `left` ms left on both clocks, and for which no more was ever asked. */
function holdWith(left: number, of: Partial<Hold> = {}): Hold {
  return Object.assign(new Hold("id", "shop"), {
    endMono: MONO + left,
    endWall: WALL + left,
    ttl: left,
    mayLiveUntil: MONO + left,
    seen: { mono: MONO - 10, wall: WALL - 10 },
    flag: 1,
    token: 100,
    mayPass: 16,
    ownedAt: MONO - 10,
    ...of,
  });
}

describe("a hold with a rest in ms, for these terms", () => {
  const row = (
    sentence: string,
    [ttl, left]: readonly [ttl: number, left: number],
    terms: Terms,
    is: ReturnType<typeof fits>,
    { isDirect = false, window = WINDOW } = {},
  ): void => {
    it(sentence, () => expect(fits({ ttl }, left, terms, window, isDirect)).toBe(is));
  };
  row(
    "is too much, with more than the window and one and a half leases",
    [9_000, 3_001],
    explicit(2_000),
    "too much",
  );
  row("is enough, with one and a half leases and no more", [9_000, 3_000], explicit(2_000), "enough", {
    window: 2_000,
  });
  row("is enough, with the window and no more", [9_000, 3_000], explicit(100), "enough");
  row("is enough, with nine tenths of a lease that is not renewed", [900, 900], explicit(1_000), "enough");
  row(
    "is short, with less than nine tenths of a lease that is not renewed",
    [1_000, 899],
    explicit(1_000),
    "short",
  );
  row("is enough, with half of the window, of a lease that is renewed", [3_000, 1_500], renewed, "enough");
  row(
    "is short, with less than half of the window, of a lease that is renewed",
    [3_000, 1_499],
    renewed,
    "short",
  );
  row("is enough, with half of a window that is shorter", [800, 400], renewed, "enough", { window: 800 });
  row("is enough, with half of 3 s if the window is longer", [9_000, 1_500], renewed, "enough", {
    window: 9_000,
  });
  row(
    "is enough, with half of a lease that is shorter and renewed",
    [800, 400],
    { ...renewed, lease: 800 },
    "enough",
  );
  row(
    "is enough, with half of its lease, if its own command has set it",
    [1_000, 500],
    explicit(1_000),
    "enough",
    {
      isDirect: true,
    },
  );
  row(
    "is short, with less than half, if its own command has set it",
    [1_000, 499],
    explicit(1_000),
    "short",
    {
      isDirect: true,
    },
  );
  row("is short if its own command has set less than was wanted", [999, 999], explicit(1_000), "short", {
    isDirect: true,
  });
});

describe("what is left of a hold", () => {
  it("is the monotonic clock's value, if that is earlier", () =>
    expect(holdWith(0, { endMono: MONO + 5, endWall: WALL + 6 }).left(MONO, WALL)).toBe(5));
  it("is the wall clock's value, if that is earlier", () =>
    expect(holdWith(0, { endMono: MONO + 6, endWall: WALL + 5 }).left(MONO, WALL)).toBe(5));
});

describe("a hold blocks others for too long", () => {
  const terms = explicit(2_000);
  it("because of its known rest", () =>
    expect(isTooLong(holdWith(3_001, { mayLiveUntil: 0 }), terms, WINDOW, MONO)).toBe(true));
  it("because of the TTL asked for, whatever was answered", () =>
    expect(isTooLong(holdWith(100, { mayLiveUntil: MONO + 3_001 }), terms, WINDOW, MONO)).toBe(true));
  it("but not with one and a half leases or the window", () =>
    expect(isTooLong(holdWith(3_000), terms, WINDOW, MONO)).toBe(false));
  it("and not because it is short", () => expect(isTooLong(holdWith(1), terms, WINDOW, MONO)).toBe(false));
});

describe("what a hold is raised to", () => {
  const row = (sentence: string, terms: Terms, ms: number): void => {
    it(sentence, () => expect(ttlFor(terms, WINDOW)).toBe(ms));
  };
  row("is the window for a renewed hold that may linger", lingering, 3_000);
  row("is the window also for a short, renewed lease that may linger", { ...lingering, lease: 500 }, 3_000);
  row(
    "is the lease if it is not renewed and longer than the window",
    { ...explicit(9_000), linger: 1 },
    9_000,
  );
  row(
    "is the window if the lease is not renewed, shorter, and may linger",
    { ...explicit(500), linger: 1 },
    3_000,
  );
  row("is the window if the lease is renewed", renewed, 3_000);
  row("is the lease if it is renewed and shorter than the window", { ...renewed, lease: 500 }, 500);
  row("is the lease if it is not renewed", explicit(9_000), 9_000);
});

interface Case {
  readonly hold?: Partial<Hold>;
  readonly left?: number;
  readonly mine?: Partial<Possession>;
  readonly terms?: Terms;
  readonly passes?: number;
  readonly hasStays?: boolean;
  readonly isHeard?: boolean;
}

function exclusive({
  hold,
  left = 3_000,
  mine,
  terms = lingering,
  passes = 16,
  hasStays = true,
  isHeard = true,
}: Case) {
  const possession: Possession = {
    isKept: false,
    keeping: null,
    tokensUntil: 0,
    kind: { hasStays },
    context: { window: WINDOW, inbox: { hears: (name) => isHeard && name === "shop" } },
    ...mine,
  };
  return [holdWith(left, hold), possession, { terms, passes }, MONO] as const;
}

describe("the next caller of this process, at a lock that one has at a time", () => {
  const row = (sentence: string, is: ReturnType<typeof next>, of: Case): void => {
    it(sentence, () => expect(next(...exclusive(of), WALL)).toBe(is));
  };
  row("has it now if no other process wants it", "now", {});
  row("does not have it after its deadline", "no", { left: 0 });
  row("does not have it from idle if another process wants it", "no", {
    hold: { wantedAt: MONO - 1 },
    mine: { isKept: true },
  });
  row("has it from inside if another process has wanted it only for a moment", "now", {
    hold: { wantedAt: MONO - 1 },
  });
  row(
    "has it after any number of local hand-offs if no other process wants it and it would be notified",
    "now",
    {
      hold: { turns: 99, ownedAt: MONO - 999, passes: 99 },
      mine: { tokensUntil: 1_000 },
    },
  );
  row("does not have it beyond the local hand-offs of the hold if another process wants it", "no", {
    hold: { wantedAt: MONO - 1, turns: 3, mayPass: 3 },
  });
  row(
    "does not have it beyond the local hand-offs that it would wait for if another process wants it",
    "no",
    {
      hold: { wantedAt: MONO - 1, turns: 3 },
      passes: 3,
    },
  );
  row("has it one local hand-off before that", "now", { hold: { wantedAt: MONO - 1, turns: 2 }, passes: 3 });
  row("does not have it 25 ms after another process first wanted it", "no", {
    hold: { wantedAt: MONO - 25, ownedAt: MONO - 99 },
  });
  row("has it within 25 ms of its arrival here, however long another process has wanted it", "now", {
    hold: { wantedAt: MONO - 99, ownedAt: MONO - 24 },
  });
  row("does not have it by a local hand-off if these are off", "no", { passes: 0 });
  row("has it from idle also if local hand-offs are off", "now", {
    passes: 0,
    mine: { isKept: true, tokensUntil: 101 },
    hold: { mayPass: 0 },
  });
  row("asks if this process was not notified of waiters and would be", "ask", {
    hold: { flag: 0, turns: 16 },
  });
  row("does not have it if this process was not notified of waiters and would not be", "no", {
    hold: { flag: 0, turns: 16 },
    isHeard: false,
  });
  row("does not have it if this process was not notified, and another one wants it", "no", {
    hold: { flag: 0, turns: 16, wantedAt: MONO - 1 },
  });
  row(
    "does not have it beyond the local hand-offs if this process was notified, and another one wants it",
    "no",
    {
      hold: { flag: 1, turns: 16, wantedAt: MONO - 1 },
    },
  );
  row("does not have it if this process was not notified, and local hand-offs are off", "no", {
    hold: { flag: 0, turns: 16 },
    passes: 0,
  });
  row("does not have it beyond the local hand-offs, of a kind that does not report waiters", "no", {
    hold: { flag: 0, turns: 16 },
    hasStays: false,
  });
  row("is counted, of a kind that does not report waiters, regardless of notifications", "no", {
    hold: { turns: 16 },
    hasStays: false,
  });
  row("does not ask if this process was not notified and the hold lives for too long", "no", {
    hold: { flag: 0, turns: 16, mayLiveUntil: MONO + 3_001 },
    terms: explicit(2_000),
  });
  row("does not have it if the hold lives for too long", "no", {
    hold: { mayLiveUntil: MONO + 3_001 },
    terms: explicit(2_000),
  });
  row("asks if Redis has not confirmed for 100 ms that it is ours", "ask", {
    hold: { seen: { mono: MONO - 100, wall: WALL } },
  });
  row("asks if there is no token for it", "ask", { hold: { passes: 16 } });
  row("asks if no token is reserved for it", "ask", { hold: { reserved: 0 } });
  row("has it with a reserved token, while others wait", "now", {
    hold: { reserved: 1, wantedAt: MONO - 1 },
  });
  row("does not ask for a token while others wait", "no", { hold: { reserved: 0, wantedAt: MONO - 1 } });
  row("has it by a token that is not above the server's time", "now", {
    hold: { passes: 16 },
    mine: { tokensUntil: 117 },
  });
  row("asks if its token would be above the server's time", "ask", {
    hold: { passes: 16 },
    mine: { tokensUntil: 116 },
  });
  row("has it without a confirmation, of a kind that does not report waiters", "now", {
    hold: { seen: { mono: MONO - 100, wall: WALL }, passes: 15 },
    hasStays: false,
  });
  row("does not have it without a reserved token, of such a kind", "no", {
    hold: { passes: 16 },
    hasStays: false,
  });
  row("asks for a cached lock if it does not linger itself", "ask", {
    mine: { keeping: {} },
    terms: renewed,
  });
  row("has it without lingering if it was not cached", "now", { terms: renewed });
  row("asks if the rest is short for it", "ask", { left: 1_000 });
});

describe("the next caller, after the answer to its renewal", () => {
  const row = (sentence: string, is: boolean, of: Case): void => {
    it(sentence, () => expect(isStillNext(...exclusive(of))).toBe(is));
  };
  row("has it, of a kind that does not report waiters", true, {
    hasStays: false,
    hold: { passes: 16, wantedAt: MONO - 99, turns: 99 },
  });
  row("does not have it without a token", false, { hold: { passes: 16 } });
  row("has it if no other process wants it", true, { hold: { flag: 0, turns: 99 } });
  row("has it within the local hand-offs if another process wants it", true, {
    hold: { wantedAt: MONO - 1 },
  });
  row("does not have it beyond the local hand-offs that it would wait for if another one wants it", false, {
    hold: { wantedAt: MONO - 1, turns: 3 },
    passes: 3,
  });
  row("does not have it beyond the local hand-offs of the hold if another process wants it", false, {
    hold: { wantedAt: MONO - 1, turns: 3, mayPass: 3 },
  });
});

describe("a reader of this process, at a shared hold", () => {
  const openness = (
    of: Partial<Omit<shared.Openness, "hold">> = {},
    hold: Partial<Hold> = {},
    left = 3_000,
  ): shared.Openness => ({
    hold: holdWith(left, hold),
    asked: { mono: MONO - 10, wall: WALL - 10 },
    isClosed: false,
    isJoining: false,
    isIdle: false,
    ...of,
  });
  const row = (
    sentence: string,
    is: ReturnType<typeof shared.next>,
    mine: shared.Openness,
    terms = renewed,
  ): void => {
    it(sentence, () => expect(shared.next(mine, terms, WINDOW, MONO, WALL)).toBe(is));
  };
  row("enters now if Redis reported a moment ago that no caller waits", "now", openness());
  row("does not enter if another caller waits", "no", openness({ isClosed: true }));
  row("does not enter while Redis is asked for another reader", "no", openness({ isJoining: true }));
  row("does not enter after its deadline", "no", openness({}, {}, 0));
  row("does not enter if writers would wait for too long", "no", openness({}, {}, 3_001), explicit(2_000));
  row("asks if the rest is short for it", "ask", openness({}, {}, 1_000));
  const old = { asked: { mono: MONO - 25, wall: WALL } };
  row("asks 25 ms after Redis reported that no caller waits", "ask", openness(old, { flag: 0 }));
  row(
    "asks 25 ms after that by the wall clock",
    "ask",
    openness({ asked: { mono: MONO, wall: WALL - 25 } }, { flag: 0 }),
  );
  row("enters before that if no writer would announce itself", "now", openness({}, { flag: 0 }));
  row(
    "enters later if a writer would announce itself",
    "now",
    openness({ asked: { mono: MONO - 99, wall: WALL - 99 } }),
  );
  row(
    "asks 100 ms later if a writer would announce itself",
    "ask",
    openness({ asked: { mono: MONO - 100, wall: WALL } }),
  );
  row("asks for a cached one if it does not linger itself", "ask", openness({ isIdle: true }));
  row("enters a cached one if it may linger", "now", openness({ isIdle: true }), lingering);

  it("enters on an answer only as far as the hold suits it", () => {
    const suits = (left: number, terms: Terms) => shared.leaseFits(holdWith(left), terms, WINDOW, MONO, WALL);
    expect(suits(3_000, renewed)).toBe("enough");
    expect(suits(1_000, renewed)).toBe("short");
    expect(suits(3_001, explicit(2_000))).toBe("no");
    expect(suits(0, renewed)).toBe("no");
  });

  const opens = (sentence: string, is: boolean, mine: shared.Openness): void => {
    it(sentence, () => {
      expect(shared.isJoinable(mine)).toBe(is);
      expect(shared.isOpen(mine, MONO, WALL)).toBe(is);
    });
  };
  opens("finds it open if no caller waits and no request is under way", true, openness());
  opens("finds it closed if another caller waits", false, openness({ isClosed: true }));
  opens("finds it closed, while Redis is asked", false, openness({ isJoining: true }));
});

/** A caller in line, and those after it. */
const line = (first: Terms, ...others: readonly Terms[]): Parameters<typeof permitRules.runFrom>[0] => {
  const [second, ...rest] = others;
  return { terms: first, next: second ? line(second, ...rest) : null };
};

describe("a run of callers that want permits", () => {
  const row = (
    sentence: string,
    callers: readonly [Terms, ...Terms[]],
    is: Partial<ReturnType<typeof permitRules.runFrom>>,
  ): void => {
    it(sentence, () => expect(permitRules.runFrom(line(...callers), WINDOW)).toMatchObject(is));
  };
  row("asks for what the first one wants, and up to what all want", [permits(2), permits(3), permits(1)], {
    units: 2,
    upTo: 6,
    permits: 10,
    callers: 3,
  });
  row("ends before a caller whose code gives another number", [permits(2), permits(1, 20), permits(1)], {
    upTo: 2,
    callers: 1,
  });
  row(
    "ends before a caller with which it would want more than there are",
    [permits(6), permits(5), permits(1)],
    {
      upTo: 6,
      callers: 1,
    },
  );
  row("goes up to as many as there are", [permits(6), permits(4)], { upTo: 10, callers: 2 });
  row("has a bound if no code gives the number", [permits(1_000_000, null), permits(1, null)], {
    upTo: 1_000_000,
    permits: null,
    callers: 1,
  });
  row(
    "ends before a caller for which the hold of the first would be too long",
    [permits(1, 10, explicit(9_000)), permits(1, 10, explicit(1_000))],
    { upTo: 1, callers: 1 },
  );
  row(
    "ends before a caller for which the hold of the first would be too short",
    [permits(1, 10, explicit(1_000)), permits(1, 10, explicit(2_000))],
    { upTo: 1, callers: 1 },
  );
  row(
    "goes on with a caller that wants hardly longer than the first",
    [permits(1, 10, explicit(1_000)), permits(1, 10, explicit(1_100))],
    { upTo: 2, callers: 2 },
  );
  row("is at most 256 callers", [permits(1, 1_000), ...Array<Terms>(300).fill(permits(1, 1_000))], {
    upTo: 256,
    callers: 256,
  });
  row("asks for one unit by default", [renewed], {
    units: 1,
    upTo: 1,
    permits: null,
    callers: 1,
  });

  it("is for one number of one total, and for no other", () => {
    const run = { units: 2, upTo: 6, permits: 10, callers: 3 };
    expect(permitRules.isFor(run, permits(2))).toBe(true);
    expect(permitRules.isFor(run, permits(3))).toBe(false);
    expect(permitRules.isFor(run, permits(2, 20))).toBe(false);
    expect(permitRules.isFor({ units: 1, upTo: 1, permits: null, callers: 1 }, renewed)).toBe(true);
  });
  it("counts the units of a caller, one by default", () => {
    expect(permitRules.unitsOf(permits(3))).toBe(3);
    expect(permitRules.unitsOf(renewed)).toBe(1);
  });
});

describe("permits that this process has", () => {
  const pool = (
    of: Partial<Omit<permitRules.Permits, "hold">> = {},
    hold: Partial<Hold> = {},
    left = 3_000,
  ): permitRules.Permits => ({
    hold: holdWith(left, hold),
    run: { units: 1, upTo: 4, permits: 10, callers: 4 },
    free: 2,
    wasUsed: true,
    ...of,
  });
  const serving = (sentence: string, is: boolean, mine: permitRules.Permits, terms = permits(2)): void => {
    it(`serve a caller${is ? "" : " not"}, ${sentence}`, () =>
      expect(permitRules.serves(mine, terms, WINDOW, MONO, WALL)).toBe(is));
  };
  serving("for which there are units", true, pool());
  serving("for which there are not units enough", false, pool({ free: 1 }));
  serving("when they were force-released", false, pool({}, { isRevoked: true }));
  serving("for which a token was reserved", true, pool({}, { passes: 3 + 15 }));
  serving("for which no token was reserved", false, pool({}, { passes: 3 + 16 }));
  serving("that is the first, with the token of the grant", true, pool({ wasUsed: false }, { passes: 99 }));
  serving("whose code gives another number of permits", false, pool(), permits(2, 20));
  serving("whose code does not give the number", true, pool(), permits(2, null));
  serving(
    "whose code gives it if the other's did not",
    false,
    pool({
      run: { units: 1, upTo: 4, permits: null, callers: 4 },
    }),
  );
  serving("after the deadline", false, pool({}, {}, 0));
  serving("for which they live too long", false, pool({}, {}, 3_001), permits(2, 10, explicit(2_000)));
  serving(
    "for which the TTL asked for is too long",
    false,
    pool({}, { mayLiveUntil: MONO + 3_001 }),
    permits(2, 10, explicit(2_000)),
  );
  serving("for which the rest is short", false, pool({}, {}, 1_000));

  const passing = (
    sentence: string,
    is: boolean,
    hold: Partial<Hold>,
    passes = 16,
    terms = permits(2),
  ): void => {
    it(`go on to a caller${is ? "" : " not"}, ${sentence}`, () =>
      expect(permitRules.passes(pool({}, hold), { terms, passes }, WINDOW, MONO, WALL)).toBe(is));
  };
  passing("within 25 ms of their coming here", true, { ownedAt: MONO - 24 });
  passing("25 ms after their coming here", false, { ownedAt: MONO - 25 });
  passing("one pass before the last that the hold may have", true, { turns: 2, mayPass: 3 });
  passing("after as many passes as the hold may have", false, { turns: 3, mayPass: 3 });
  passing("after as many passes as it would wait for", false, { turns: 3 }, 3);
  passing("where they would not serve it", false, {}, 16, permits(3));
});

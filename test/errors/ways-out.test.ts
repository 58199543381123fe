import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { type BaseLease, LockLostError, LockUnavailableError, type Term } from "../../src/index.ts";
import { redissonFencedLock, redissonLock } from "../../src/redisson.ts";
import { spinLock } from "../../src/spin.ts";
import { clientOn, quorumOn, startMaster } from "../contract/in-virtual-time.ts";
import { freshName } from "../support/fixture.ts";
import { until } from "../support/until.ts";
import { whileTimePasses } from "../world/virtual-time.ts";

// Every way out of a block that has a lock, in every state of the lock, in virtual time. What the
// caller gets is what the table of docs/errors.md says.

/** ms: every lost lease here ends after that. */
const SHORT = 2_000;
/** ms: a release that Redis does not confirm fails after that. */
const REPLY = 300;

/** ms: longer than both. */
const FROZEN_FOR = 3_000;

/** The rows of the table, by the state of the lock and what the body does. */
const STATES = [
  "held",
  "held, and Redis does not confirm the release",
  "lost",
  "lost, and thrown in the body",
];
/** The second one: Redis does not answer. */
const FROZEN = 1;
const FORMS = ["withLock", "await using", "using", "finally"] as const;
type Form = (typeof FORMS)[number];

interface Row {
  readonly state: number;
  readonly body: string;
  readonly expected: Readonly<Record<Form, string>>;
}

const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
const [section = ""] = page.slice(page.indexOf("## The end of a block")).split(/\n## /);
const ROWS: readonly Row[] = section
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .slice(1)
  .map((line) => {
    const [state = "", body = "", ...cells] = line.slice(2, -2).split(" | ");
    const expected = Object.fromEntries(FORMS.map((form, i) => [form, cells[i] ?? ""]));
    return { state: STATES.indexOf(state), body, expected: expected as Row["expected"] };
  });

/** What a body sees. */
type Seen = Pick<BaseLease, "held" | "signal" | "assertHeld"> & { extend?(ms: number): Promise<void> };
type Body = (seen: Seen) => Promise<string>;

/** A way to hold a lock for a block. `isRenewed`: its lease ends only while Redis does not answer. */
interface Way {
  readonly isRenewed?: boolean;
  readonly run: (form: Form, name: string, lease: number | undefined, body: Body) => Promise<unknown>;
}

const masters = [startMaster(), startMaster(), startMaster()];
const nodes = masters.map(({ redis }) => redis);
const locks = clientOn(nodes[0] as Redis, { replyTimeout: REPLY });
const quorum = quorumOn(nodes, { replyTimeout: REPLY });

/** What callers have of a lease. */
type Taken = Seen & AsyncDisposable & Partial<Disposable> & { [how in End]?: () => Promise<void> };
type End = "unlock" | "release" | "resign";

/** The three ways out of a caller that has the lease in a variable. */
async function keep(form: Form, lease: Taken, body: Body, end: End = "unlock"): Promise<string> {
  if (form === "await using") {
    await using _ = lease;
    return await body(lease);
  }
  if (form === "using") {
    using _ = lease as Taken & Disposable;
    return await body(lease);
  }
  try {
    return await body(lease);
  } finally {
    await lease[end]?.();
  }
}

interface AnyLock {
  lock(options: object): Promise<Taken>;
  withLock(options: object, body: Body): Promise<string>;
}

/** The same for every kind of lock. */
const of = (lockOf: (name: string) => AnyLock): Way => ({
  run: async (form, name, lease, body) =>
    form === "withLock"
      ? lockOf(name).withLock({ lease }, body)
      : keep(form, await lockOf(name).lock({ lease }), body),
});

/** In a scope that has the lock already, and whose first caller leaves before the last. */
const inside = (outer: (name: string) => AnyLock, inner = outer): Way => ({
  run: (form, name, lease, body) =>
    locks.scope(async () => {
      const first = await outer(name).lock({ lease });
      const last: Body = async (seen) => {
        await first.unlock?.();
        return body(seen);
      };
      return of(inner).run(form, name, lease, last);
    }),
});

const WAYS: Readonly<Record<string, Way>> = {
  lock: of((name) => locks.lock(name) as unknown as AnyLock),
  fairLock: of((name) => locks.fairLock(name) as unknown as AnyLock),
  "a multi-lock": of((name) => locks.multiLock([name, `${name}:2`]) as unknown as AnyLock),
  "a read lock": of((name) => locks.readWriteLock(name).read as unknown as AnyLock),
  "a write lock": of((name) => locks.readWriteLock(name).write as unknown as AnyLock),
  redissonLock: of((name) => redissonLock(locks, name) as unknown as AnyLock),
  redissonFencedLock: of((name) => redissonFencedLock(locks, name) as unknown as AnyLock),
  spinLock: of((name) => spinLock(locks, name) as unknown as AnyLock),
  "a quorum": of((name) => quorum.lock(name) as unknown as AnyLock),
  "a lock entered again": inside((name) => locks.lock(name) as unknown as AnyLock),
  "a reader in a writer's scope": inside(
    (name) => locks.readWriteLock(name).write as AnyLock,
    (name) => locks.readWriteLock(name).read as AnyLock,
  ),
  permits: {
    run: async (form, name, lease, body) => {
      const semaphore = locks.semaphore(name, { permits: 2 });
      if (form === "withLock") return semaphore.withPermits(1, { lease }, body);
      return keep(form, await semaphore.acquire(1, { lease }), body, "release");
    },
  },
  runOnce: {
    isRenewed: true,
    run: async (form, name, lease, body) => {
      if (form !== "withLock") return NONE;
      const result = await locks.runOnce(
        name,
        { every: 3_600_000, lease, onCrash: lease === undefined ? "keep" : "again" },
        body,
      );
      return result.ran && result.value;
    },
  },
  "a leader's term": {
    isRenewed: true,
    run: async (form, name, lease, body) => {
      // `runAsLeader` leads again after a loss.
      if (form === "withLock" || form === "using") return NONE;
      const term: Term = await locks.election(name, { lease }).campaign();
      return keep(form, term, body, "resign");
    },
  },
};

/** This way has no such form. */
const NONE = Symbol("none");

const BOUNDS = { timeout: 60_000 };

/** How a body comes to have the loss. */
const TELLERS: Readonly<Record<string, (seen: Seen) => unknown>> = {
  assertHeld: (seen) => seen.assertHeld(),
  throwIfAborted: (seen) => seen.signal.throwIfAborted(),
  extend: (seen) => (seen.extend ? seen.extend(1_000) : seen.assertHeld()),
};

/** Acts once so many cells have come, and then lets all of them go on. */
class Meeting {
  readonly #go: Promise<void>;
  #open = (): void => {};
  #missing: number;

  constructor(size: number, act: () => void) {
    this.#missing = size;
    this.#go = new Promise<void>((resolve) => {
      this.#open = resolve;
    }).then(act);
  }

  come(): Promise<void> {
    if (--this.#missing <= 0) this.#open();
    return this.#go;
  }
}

interface Cell {
  readonly form: Form;
  readonly row: Row;
  readonly teller: string;
}

/** When Redis answers again, on the monotonic clock. */
let frozenUntil = 0;
const freeze = (): void => {
  frozenUntil = performance.now() + FROZEN_FOR;
  for (const master of masters) master.freeze(FROZEN_FOR);
};
const thaw = (): Promise<void> => delay(Math.max(0, frozenUntil - performance.now()));

/** Runs cells of one state side by side, and says in the words of the table what their callers got. */
async function outcomesOf(way: Way, cells: readonly Cell[]): Promise<(string | null)[]> {
  const isFrozen = cells[0]?.row.state === FROZEN || way.isRenewed;
  const all = new Meeting(cells.length, () => isFrozen && freeze());
  const over = new Meeting(cells.length, thaw);
  return Promise.all(cells.map((cell) => outcomeOf(way, cell, all, over))).finally(thaw);
}

async function outcomeOf(way: Way, cell: Cell, all: Meeting, over: Meeting): Promise<string | null> {
  const { form, row, teller } = cell;
  const name = freshName();
  const own = new Error("the body's own");
  const events: Error[] = [];
  const listener = (error: Error & { lockName?: string | null }) => {
    if (error.lockName?.startsWith(name) && !error.message.includes("renewal")) events.push(error);
  };
  for (const client of [locks, quorum]) client.on("error", listener);
  const isLost = row.state >= 2;
  const meetings = [all, over];
  const meet = async (): Promise<void> => meetings.shift()?.come();
  const body: Body = async (seen) => {
    if (row.state > 0) await meet();
    if (isLost) {
      await until(() => !seen.held, BOUNDS);
      await meet();
    }
    let loss: unknown;
    if (row.state === 3) {
      loss = await Promise.resolve(seen)
        .then(TELLERS[teller])
        .catch((error: unknown) => error);
      expect(loss).toBeInstanceOf(LockLostError);
    }
    if (row.body === "throws the loss") throw loss;
    if (row.body.startsWith("throws")) throw own;
    return "value";
  };
  try {
    const settled = await way.run(form, name, isLost ? SHORT : undefined, body).then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    // A cell whose body did not run keeps no other one waiting.
    for (const meeting of meetings.splice(0)) void meeting.come();
    if ("value" in settled && settled.value === NONE) return null;
    const text = inWords(settled, own);
    if (row.expected[form].includes("event")) await until(() => events.length > 0, BOUNDS);
    else await new Promise(setImmediate);
    return events.length > 0 ? `${text}, and an event` : text;
  } finally {
    for (const client of [locks, quorum]) client.off("error", listener);
  }
}

function inWords(settled: { value: unknown } | { error: unknown }, own: Error): string {
  if ("value" in settled) return settled.value === "value" ? "its value" : `${settled.value}`;
  const { error } = settled as { error: Error & { error?: unknown; suppressed?: unknown } };
  if (error === own) return "its error";
  const all = error instanceof AggregateError ? error.errors : [error];
  if (all.every((one) => one instanceof LockUnavailableError)) return "`LockUnavailableError`";
  if (all.every((one) => one instanceof LockLostError))
    return error.cause === own ? "the loss; `cause`: its error" : "the loss";
  if (
    error.name === "SuppressedError" &&
    error.suppressed === own &&
    inWords({ error: error.error }, own) === "the loss"
  )
    return "a `SuppressedError` with both";
  return `${error}`;
}

it("the page has a row for each state and outcome of a body", () => {
  expect(ROWS.map(({ state, body }) => `${state} ${body}`)).toEqual([
    "0 returns",
    "0 throws",
    "1 returns",
    "1 throws",
    "2 returns",
    "2 throws",
    "3 returns",
    "3 throws the loss",
    "3 throws another error",
  ]);
});

async function everyBlock(way: Way, state: number): Promise<void> {
  const cells = ROWS.filter((row) => row.state === state).flatMap((row) =>
    FORMS.flatMap((form) =>
      (state === 3 ? Object.keys(TELLERS) : [""]).map((teller): Cell => ({ row, form, teller })),
    ),
  );
  const outcomes = await whileTimePasses(() => outcomesOf(way, cells));
  const said = cells.map(({ form, row, teller }, i) => {
    const title = `${row.body} ${teller} ${form}`;
    return [title, outcomes[i] === null ? null : row.expected[form], outcomes[i]] as const;
  });
  expect(said.map(([title, , outcome]) => [title, outcome])).toEqual(
    said.map(([title, expected]) => [title, expected]),
  );
  expect(outcomes.some((outcome) => outcome !== null)).toBe(true);
}

const TITLE = "%s: every block ends as the page says";
const ALL = STATES.map((state, i) => [state, i] as const);
const ways = Object.entries(WAYS);

/** Their leases end by themselves, at the same time. */
describe.concurrent.each(ways.filter(([, { isRenewed }]) => !isRenewed))("%s", (_, way) => {
  it.each(ALL.filter(([, i]) => i !== FROZEN))(TITLE, (_, i) => everyBlock(way, i));
});

/** One after the other: Redis does not answer meanwhile. */
describe.each(ways)("%s", (_, way) => {
  it.each(ALL.filter(([, i]) => i === FROZEN || way.isRenewed))(TITLE, (_, i) => everyBlock(way, i));
});

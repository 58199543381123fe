import { describe, expect, it } from "vitest";
import { STAY_WINDOW } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { ALL_HELD, type Ending, ExitStage, type Held } from "./exit-stage.ts";

// What a process that ends gives back: what it kept, and what it unlocked without waiting for it.

const stage = new ExitStage();

const WAITED = ["waited for here"] as const;
/** Its process has a place in the queue of Redis too, which is served while its connection is still there. */
const QUEUED = "permits waited for here";

const UNWAITED = ALL_HELD.filter((one) => one !== QUEUED && !WAITED.some((waited) => waited === one));

/** How it ends, with which exit code, and what it does not give back. */
const ENDINGS: readonly (readonly [Ending, number, readonly Held[]])[] = [
  ["late handler", 0, []],
  ["error", 1, []],
  ["worker", 0, []],
  // Callers that wait keep a process alive.
  ["nothing left", 3, WAITED],
  ["beforeExit", 0, WAITED],
  // The caller that waited has got the lock, and did not live to know it.
  ["reply", 0, WAITED],
  ["timer", 0, WAITED],
  // Nor would close() wait for it.
  ["close", 0, WAITED],
];

/** What a process prints that ends before a connection has taken what it unlocked. */
const UNWRITTEN =
  /^\[holdfast\] The process ended before Redis at \S+ took all commands, .*locks\.close\(\)/m;

describe.each(["TCP", "Unix socket"] as const)("over %s", (transport) => {
  it.concurrent.each(ENDINGS)(
    "everything is free after a process has ended: %s",
    async (ending, code, not) => {
      // The text of their script is half of what Redis reads at once.
      const held = ALL_HELD.filter((one) => !one.includes("reads") && one !== QUEUED && !not.includes(one));
      const ended = await stage.end(transport, { ending, held });
      expect(ended, ended.stderr).toMatchObject({ code, taken: [] });
    },
  );

  it.concurrent("cached reads are given back too", async () => {
    const order = {
      ending: "late handler",
      held: ["kept reads", "readers", "reads taken again"],
      isApart: true,
    } as const;
    const ended = await stage.end(transport, order);
    expect(ended).toMatchObject({ code: 0, taken: [], stderr: "" });
  });
});

describe("over TLS", () => {
  it.concurrent("everything is free after close()", async () => {
    expect(await stage.end("TLS", { ending: "close", held: UNWAITED })).toMatchObject({
      code: 0,
      taken: [],
      stderr: "",
    });
  });

  it.concurrent("cached locks are released by one write", async () => {
    const ended = await stage.end("TLS", { ending: "timer", held: ["kept", "kept reads"] });
    expect(ended).toMatchObject({ taken: [], stderr: "" });
  });

  it.concurrent.each(["late handler", "reply", "timer"] as const)(
    "one unlock of a turn is written, and a later one is not, as a printed line says: %s",
    async (ending) => {
      const held = ["lock", "fairLock"] as const;
      const ended = await stage.end("TLS", { ending, held, isApart: true });
      expect(ended).toMatchObject({ code: 0, taken: ["fairLock"] });
      expect(ended.stderr).toMatch(UNWRITTEN);
    },
  );

  it.concurrent("a single unlock is written, and nothing is printed", async () => {
    const ended = await stage.end("TLS", { ending: "reply", held: ["lock"] });
    expect(ended).toMatchObject({ code: 0, taken: [], stderr: "" });
  });
});

describe("over TCP", () => {
  it.each([
    [
      "the cached locks of a worker thread, when the main thread ends the process",
      "worker of a process that ends",
      "kept",
    ],
    ["permits that a caller of the process itself has queued for", "late handler", QUEUED],
  ] as const)("a lock stays taken for at most a window: %s", async (_, ending, held) => {
    const { taken, prefix } = await stage.end("TCP", { ending, held: [held] });
    // The dead caller may not have queued in time.
    if (held === "kept") expect(taken).toEqual([held]);
    const isFree = async (): Promise<boolean> => (await stage.taken("TCP", prefix, [held])).length === 0;
    await until(isFree, { timeout: 3 * STAY_WINDOW });
  });

  it.each(["lock", "spinLock", "readers", "permits"] as const)(
    "an unlock in an exit handler also works on a server that does not know the script: %s",
    async (held) => {
      await stage.connect("TCP").script("FLUSH");
      const ended = await stage.end("TCP", { ending: "late handler", held: [held], isApart: true });
      expect(ended).toMatchObject({ code: 0, taken: [], stderr: "" });
    },
  );
});

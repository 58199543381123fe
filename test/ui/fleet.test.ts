import { expect, it, onTestFinished } from "vitest";
import { Fleet } from "../../src/tools/demo/fleet.ts";
import { until } from "../support/until.ts";

// The fleet of holdfast ui --demo. What its knobs show is tested in a browser.

function start(): Fleet {
  const fleet = new Fleet();
  onTestFinished(() => fleet.close());
  return fleet;
}

const kindsOf = async ({ locks }: Fleet): Promise<Set<string>> => {
  const kinds = new Set<string>();
  for await (const { kind, holders } of locks.list()) if (holders.length > 0) kinds.add(kind);
  return kinds;
};

const KNOBS = [
  ["crash", "start", "isDead"],
  ["pause", "resume", "isPaused"],
  ["cut", "mend", "isCut"],
  ["hang", "let go", "isHung"],
] as const;

it("each knob is turned back, again and again: all work after that", async () => {
  const fleet = start();
  for (let round = 0; round < 2; round++) {
    const turned = fleet.shown().fleet.map(({ name }, i) => {
      const [on, off, is] = KNOBS[(i + round) % KNOBS.length] ?? KNOBS[0];
      expect(fleet.turn({ knob: on, process: name })).toMatchObject({ done: true });
      return { name, off, is };
    });
    const are = (state: boolean) => turned.every(({ is }, i) => fleet.shown().fleet[i]?.[is] === state);
    await until(() => are(true));
    await fleet.locks.test.advance(11_000);
    for (const { name, off } of turned)
      expect(fleet.turn({ knob: off, process: name })).toMatchObject({ done: true });
    expect(are(false)).toBe(true);
    // Answers of calls that were unanswered for long are given up in real time.
    const kinds = new Set<string>();
    await until(async () => {
      for (const kind of await kindsOf(fleet)) kinds.add(kind);
      return kinds.size === 5;
    });
  }
});

it("a deadlock ends when it is told to, and when one of its processes dies", async () => {
  const fleet = start();
  for (const end of [{ knob: "end deadlock" }, { knob: "crash", process: "web-1" }]) {
    expect(fleet.turn({ knob: "deadlock" })).toMatchObject({ done: true });
    expect(fleet.turn({ knob: "deadlock" })).toBeNull();
    await until(async () => (await fleet.locks.lock("account:2").inspect()).waiters?.length === 1);
    fleet.turn(end);
    await until(() => fleet.shown().fleet.some(({ isDead }) => isDead) || !fleet.shown().isDeadlocked);
    await fleet.locks.test.advance(11_000);
    await until(() => !fleet.shown().isDeadlocked);
  }
});

it.each([
  { knob: "start", process: "web-1" },
  { knob: "resume", process: "web-1" },
  { knob: "mend", process: "web-1" },
  { knob: "crash", process: "web-9" },
  { knob: "crash" },
  { knob: "constructor", process: "web-1" },
  { knob: "latency", ms: 7 },
  { knob: "end deadlock" },
  null,
  "crash",
])("%o is no knob that can be turned", async (wanted) => {
  const fleet = start();
  expect(fleet.turn(wanted)).toBeNull();
});

import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tellStory } from "./checker/tell-story.ts";
import type { Event, LockKind, Told } from "./history/events.ts";
import { whyNoPorcupine } from "./porcupine/go.ts";
import { judge } from "./porcupine/index.ts";

// Small histories, in ms, and what Porcupine says of them by the models of a lock, a read-write lock and a semaphore.

type Line = [at: number, by: string, told: Told];
type Asked = Partial<Extract<Told, { is: "ask" }>>;

const obstacle = await whyNoPorcupine();
if (obstacle !== null) process.stderr.write(`The models of Porcupine are not tested: ${obstacle}\n`);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-porcupine-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Asks at 0, or at `at`, and holds from `from` to `to`. */
function held(
  by: string,
  kind: LockKind,
  token: number,
  [from, to]: [number, number],
  { at = 0, ...more }: Asked & { at?: number } = {},
): Line[] {
  return [
    [at, by, { is: "ask", call: 1, lock: "it", kind, wait: null, how: "", ...more }],
    [from, by, { is: "lease", call: 1, token, left: 10_000 }],
    [to, by, { is: "unlock", call: 1, held: true }],
    [to + 1, by, { is: "unlocked", call: 1, error: null }],
  ];
}

async function judged(...lines: Line[]): Promise<string[]> {
  const events = lines.map(([at, by, told]) => ({ at: at * 1_000, by, ...told }) as Event);
  const story = tellStory(events.sort((one, other) => one.at - other.at));
  const { violations, undecided } = await judge(story, folder);
  expect(undecided).toEqual([]);
  return violations.map(({ what }) => what.replace(/ \(.*/, ""));
}

describe.skipIf(obstacle !== null)("Porcupine", () => {
  it("takes holds one after the other for those of a lock, and no others", async () => {
    const first = held("1.1", "lock", 5, [10, 20]);
    expect(await judged(...first, ...held("2.1", "fairLock", 6, [20, 30]))).toEqual([]);
    expect(await judged(...first, ...held("2.1", "lock", 6, [19, 30]))).toEqual([
      "it is no history of a lock; 2.1#1 with token 6 fits nowhere",
    ]);
    expect(await readdir(folder)).toContain("porcupine-0.html");
  });

  it("refuses tokens that fall, and takes a lock without any", async () => {
    const first = held("1.1", "lock", 5, [10, 20]);
    expect(await judged(...first, ...held("2.1", "lock", 5, [30, 40]))).toHaveLength(1);
    const plain = held("1.1", "spinLock", 0, [10, 20]);
    expect(await judged(...plain, ...held("2.1", "spinLock", 0, [30, 40]))).toEqual([]);
  });

  it("leaves out a hold that was over before its holder had it", async () => {
    const first = held("1.1", "lock", 5, [10, 11]);
    const late: Line[] = [
      [0, "2.1", { is: "ask", call: 1, lock: "it", kind: "lock", wait: null, how: "" }],
      [12, "2.1", { is: "lease", call: 1, token: 4, left: -1 }],
      [13, "2.1", { is: "unlock", call: 1, held: false }],
      [14, "2.1", { is: "unlocked", call: 1, error: "LOCK_LOST expired" }],
    ];
    expect(await judged(...first, ...late)).toEqual([]);
  });

  it("gives the lock of a killed process, and of one that lost it, to others from then on, and not before", async () => {
    const killed = held("1.1", "lock", 5, [10, 90]).slice(0, 2);
    const dead: Line = [20, "director", { is: "dead", victim: "1.1", meant: true, how: "killed" }];
    expect(await judged(...killed, dead, ...held("2.1", "lock", 6, [21, 30]))).toEqual([]);
    expect(await judged(...killed, dead, ...held("2.1", "lock", 6, [19, 30]))).toHaveLength(1);
    const lost: Line[] = [...killed, [20, "1.1", { is: "lost", call: 1, reason: "LOCK_LOST gone" }]];
    expect(await judged(...lost, ...held("2.1", "lock", 6, [21, 30]))).toEqual([]);
    expect(await judged(...lost, ...held("2.1", "lock", 6, [19, 30]))).toHaveLength(1);
  });

  it("leaves out what a server may have forgotten, and nothing later", async () => {
    const forgot: Line = [15, "director", { is: "forgot", since: 14_000, from: 1, to: 2, what: "test" }];
    const both = [...held("1.1", "lock", 5, [10, 30]), ...held("2.1", "lock", 4, [20, 40])];
    expect(await judged(forgot, ...both)).toEqual([]);
    const later = held("3.1", "lock", 8, [5_000, 5_020], { at: 4_000 });
    expect(
      await judged(forgot, ...both, ...later, ...held("4.1", "lock", 9, [5_010, 5_030], { at: 4_001 })),
    ).toHaveLength(1);
  });

  it("takes readers together with one token, and no writer beside them or with a token that is not larger", async () => {
    const readers = [
      ...held("1.1", "readLock", 5, [10, 30]),
      ...held("2.1", "readLock", 5, [20, 40], { at: 15 }),
    ];
    expect(await judged(...readers, ...held("3.1", "writeLock", 6, [41, 50]))).toEqual([]);
    expect(await judged(...readers, ...held("3.1", "writeLock", 6, [39, 50]))).toHaveLength(1);
    expect(await judged(...readers, ...held("3.1", "writeLock", 5, [41, 50]))).toHaveLength(1);
    expect(
      await judged(...held("3.1", "writeLock", 5, [1, 2]), ...held("1.1", "readLock", 5, [10, 30])),
    ).toHaveLength(1);
    const reads = held("4.1", "readLock", 5, [10, 30], { writer: 1 });
    expect(await judged(...held("3.1", "writeLock", 5, [1, 2]), ...reads)).toEqual([]);
  });

  it("takes holders of so many permits as there are", async () => {
    const two = held("1.1", "permit", 6, [10, 40], { units: 2 });
    expect(await judged(...two, ...held("2.1", "permit", 5, [20, 40], { units: 1 }))).toEqual([]);
    expect(await judged(...two, ...held("2.1", "permit", 5, [20, 50], { units: 2 }))).toHaveLength(1);
  });
});

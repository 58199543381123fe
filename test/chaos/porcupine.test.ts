import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dead, forgot, held, history, type Line, lost } from "./by-hand.ts";
import { tellStory } from "./checker/tell-story.ts";
import { whyNoPorcupine } from "./porcupine/go.ts";
import { judge } from "./porcupine/index.ts";

// Small histories, in ms, and what Porcupine says of them by the models of a lock, a read-write
// lock and a semaphore.

const obstacle = await whyNoPorcupine();
if (obstacle !== null) process.stderr.write(`The models of Porcupine are not tested: ${obstacle}\n`);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-porcupine-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function judged(...lines: Line[]): Promise<string[]> {
  const { violations, undecided } = await judge(tellStory(history(...lines)), folder);
  expect(undecided).toEqual([]);
  return violations.map(({ what }) => what.replace(/ \(.*/, ""));
}

describe.skipIf(obstacle !== null)("Porcupine", () => {
  it("accepts holds that follow each other as those of a lock, and rejects others", async () => {
    const first = held("1.1", "lock", 5, [10, 20]);
    expect(await judged(...first, ...held("2.1", "fairLock", 6, [20, 30]))).toEqual([]);
    expect(await judged(...first, ...held("2.1", "lock", 6, [19, 30]))).toEqual([
      "it is no history of a lock; 2.1#1 with token 6 fits nowhere",
    ]);
    expect(await readdir(folder)).toContain("porcupine-0.html");
  });

  it("rejects falling tokens, and accepts a lock without tokens", async () => {
    const first = held("1.1", "lock", 5, [10, 20]);
    expect(await judged(...first, ...held("2.1", "lock", 5, [30, 40]))).toHaveLength(1);
    const plain = held("1.1", "spinLock", 0, [10, 20]);
    expect(await judged(...plain, ...held("2.1", "spinLock", 0, [30, 40]))).toEqual([]);
  });

  it("leaves out a hold that was over before its holder received it", async () => {
    const first = held("1.1", "lock", 5, [10, 11]);
    const late = held("2.1", "lock", 4, [12, 13], { left: -1, error: "LOCK_LOST expired" });
    expect(await judged(...first, ...late)).toEqual([]);
  });

  it("frees the lock of a killed process, or of one that lost it, only from that moment on", async () => {
    const killed = held("1.1", "lock", 5, [10, 90]).slice(0, 2);
    for (const end of [dead(20, "1.1"), lost(20, "1.1", "LOCK_LOST gone")]) {
      expect(await judged(...killed, end, ...held("2.1", "lock", 6, [21, 30]))).toEqual([]);
      expect(await judged(...killed, end, ...held("2.1", "lock", 6, [19, 30]))).toHaveLength(1);
    }
  });

  it("leaves out only what a server may have forgotten", async () => {
    const both = [...held("1.1", "lock", 5, [10, 30]), ...held("2.1", "lock", 4, [20, 40]), forgot(15, 14)];
    expect(await judged(...both)).toEqual([]);
    const later = [
      ...held("3.1", "lock", 8, [5_000, 5_020], { at: 4_000 }),
      ...held("4.1", "lock", 9, [5_010, 5_030], { at: 4_001 }),
    ];
    expect(await judged(...both, ...later)).toHaveLength(1);
  });

  it("accepts readers together with one token, and no writer beside them or with a token that is not larger", async () => {
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

  it("knows of a writer that became a reader, whose reading a server may have forgotten", async () => {
    const writes = held("3.1", "writeLock", 5, [1, 2]);
    const forgotten = held("3.1", "readLock", 5, [10, 60], { call: 2, writer: 1 });
    const reads = held("1.1", "readLock", 5, [11, 12]);
    expect(await judged(...writes, ...forgotten, ...reads, forgot(50, 49))).toEqual([]);
    expect(await judged(...writes, ...reads, forgot(50, 49))).toHaveLength(1);
  });

  it("accepts as many holders as there are permits", async () => {
    const two = held("1.1", "permit", 6, [10, 40], { units: 2 });
    expect(await judged(...two, ...held("2.1", "permit", 5, [20, 40], { units: 1 }))).toEqual([]);
    expect(await judged(...two, ...held("2.1", "permit", 5, [20, 50], { units: 2 }))).toHaveLength(1);
  });
});

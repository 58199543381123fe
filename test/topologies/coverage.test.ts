import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { beforeAll, describe, expect, it } from "vitest";
import { createLockClient } from "../../src/index.ts";
import * as redisson from "../../src/redisson.ts";
import * as spin from "../../src/spin.ts";
import { EXCUSES, excuseOf, KINDS } from "../contract/kinds.ts";
import { topologies } from "../support/servers/kinds.ts";
import { quorums } from "../support/servers/quorums.ts";

// Every lock kind keeps its contract on every topology, or somebody wrote down why not. What runs
// is what vitest lists; which kinds there are is what the public client has.

/**
 * What makes locks: methods of a client, functions beside it; the lock of several masters, and that
 * of a client which keeps its locks.
 */
const beside = Object.keys({ ...redisson, ...spin });
const kinds = [
  ...beside,
  ...Object.getOwnPropertyNames(
    Object.getPrototypeOf(createLockClient(new Redis({ lazyConnect: true }))),
    // readWriteLock makes two, and withLock only says what to call.
  ).filter(
    (method) => /lock$/i.test(method) && !/^(readWrite|with)Lock$/.test(method) && !beside.includes(method),
  ),
  "quorumLock",
  "permit",
  "readLock",
  "writeLock",
  "lingeringLock",
];
const places = [...topologies, ...quorums].map(({ name }) => name);
const pairs = kinds.flatMap((kind) => places.map((place) => ({ kind, place })));

/** How many tests there are for each "kind on topology". */
const listed = new Map<string, number>();

beforeAll(async () => {
  const dir = await mkdtemp(join(tmpdir(), "holdfast-list-"));
  try {
    const file = join(dir, "tests.json");
    // Of contracts alone: collecting all files takes three times as long.
    const args = [
      "vitest",
      "list",
      ".contract.test.ts",
      `--json=${file}`,
      "--project=contracts",
      "--project=topologies",
    ];
    await promisify(execFile)("npx", args, { env: { ...process.env, HOLDFAST_TOPOLOGIES: "" } });
    for (const { name } of JSON.parse(await readFile(file, "utf8")) as { name: string }[]) {
      const [pair = ""] = name.split(" > ");
      listed.set(pair, (listed.get(pair) ?? 0) + 1);
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}, 180_000);

describe("the contract of every lock kind", () => {
  it("knows all kinds", () => {
    const contracted = [...Object.keys(KINDS), "multiLock"].sort();
    expect([...kinds].sort()).toEqual(contracted);
  });

  it.each(pairs)("$kind on $place runs, or has a written excuse", ({ kind, place }) => {
    const tests = listed.get(`${kind} on ${place}`) ?? 0;
    // The whole contract, not a test that happens to have this name.
    if (excuseOf(kind, place) === undefined) expect(tests).toBeGreaterThan(80);
    else expect(tests, "what runs needs no excuse").toBe(0);
  });

  it("has no superfluous excuse", () => {
    const idle = EXCUSES.filter(
      (one) => !pairs.some((pair) => one.kind.test(pair.kind) && one.topology.test(pair.place)),
    );
    expect(idle).toEqual([]);
  });
});

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, inject, it } from "vitest";
import { strictOptions } from "./strict-options.ts";

// What an editor lists after a dot is the first that a newcomer reads of the library: it has every
// name that users may use, and no other.

const CLIENT = ["check", "close", "id", "lock", "off", "on", "once", "outside", "scope"];
const REDIS_ONLY = [
  "election",
  "fairLock",
  "forget",
  "list",
  "multiLock",
  "readWriteLock",
  "remember",
  "remembered",
  "runOnce",
  "semaphore",
  "stats",
  "stopRun",
];
const LEASE = ["assertHeld", "extend", "held", "remaining", "signal", "wanted"];
const TERM = ["assertHeld", "held", "lost", "name", "proclaim", "remaining", "resign", "signal", "token"];

/** By the expression that has them. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  locks: [...CLIENT, ...REDIS_ONLY],
  "createQuorumClient([redis])": CLIENT,
  "createTestLocks()": [...CLIENT, ...REDIS_ONLY, "test"],
  "createTestLocks().test": [
    "advance",
    "another",
    "busy",
    "crash",
    "cut",
    "expire",
    "latency",
    "lose",
    "pause",
  ],
  lock: ["forceUnlock", "inspect", "isHeldHere", "isLocked", "lock", "name", "recall", "tryLock", "withLock"],
  "(await lock.lock())": [...LEASE, "name", "token", "unlock"],
  "(await spinLock(locks, 'a').lock())": [...LEASE, "name", "unlock"],
  "(await redissonLock(locks, 'a').lock())": [...LEASE, "name", "unlock"],
  "(await redissonFencedLock(locks, 'a').lock())": [...LEASE, "name", "token", "unlock"],
  multi: ["isHeldHere", "isLocked", "lock", "names", "tryLock", "withLock"],
  "(await multi.lock())": [...LEASE, "names", "tokens", "unlock"],
  "locks.readWriteLock('a')": ["inspect", "name", "read", "write"],
  semaphore: ["acquire", "forceUnlock", "inspect", "name", "setPermits", "tryAcquire", "withPermits"],
  "(await semaphore.acquire())": [...LEASE, "name", "release", "units"],
  election: ["campaign", "forceResign", "leader", "name", "observe", "runAsLeader"],
  "(await election.campaign())": [...TERM, "value"],
};

const PROGRAM = `
import { createLockClient, type RedisLike } from "holdfast";
import { createQuorumClient } from "holdfast/quorum";
import { redissonFencedLock, redissonLock } from "holdfast/redisson";
import { spinLock } from "holdfast/spin";
import { createTestLocks } from "holdfast/testing";
declare const redis: RedisLike;
const locks = createLockClient(redis);
const lock = locks.lock("a");
const multi = locks.multiLock(["a", "b"]);
const semaphore = locks.semaphore("a");
const election = locks.election("a");
`;

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = join(inject("packedIn"), "package");

/** The program lies in the package's own folder, where its name leads to its declarations as for any user. */
const PATH = join(folder, "editor.ts");
let text = PROGRAM;
let version = 0;
const service = ts.createLanguageService({
  ...ts.sys,
  useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
  getCompilationSettings: () => ({
    ...strictOptions(root),
  }),
  getCurrentDirectory: () => folder,
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  getScriptFileNames: () => [PATH],
  getScriptVersion: (path) => (path === PATH ? String(version) : "0"),
  getScriptSnapshot: (path) => {
    const found = path === PATH ? text : ts.sys.readFile(path);
    return found === undefined ? undefined : ts.ScriptSnapshot.fromString(found);
  },
});

/** What the editor lists after a dot. */
function listAfter(expression: string): string[] {
  text = `${PROGRAM}${expression}.`;
  version++;
  return service.getCompletionsAtPosition(PATH, text.length, {})?.entries.map(({ name }) => name) ?? [];
}

it.each(Object.entries(LISTS))(
  "after %s, the editor offers the promised completions",
  { timeout: 120_000 },
  (of, has) => {
    expect(listAfter(of).sort()).toEqual([...has].sort());
  },
);

it("the program has no other mistake than the dot at its end", { timeout: 120_000 }, () => {
  text = PROGRAM;
  version++;
  const said = [...service.getSyntacticDiagnostics(PATH), ...service.getSemanticDiagnostics(PATH)];
  expect(said.map(({ messageText }) => messageText)).toEqual([]);
});

it("the declarations contain nothing marked as internal", () => {
  const files = readdirSync(join(folder, "dist")).filter((file) => file.endsWith(".d.ts"));
  expect(files).toContain("api-lease.d.ts");
  const marked = files.filter((file) =>
    readFileSync(join(folder, "dist", file), "utf8").includes("@internal"),
  );
  expect(marked).toEqual([]);
});

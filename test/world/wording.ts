import type { Call } from "../../src/redis/call.ts";
import { codes } from "../../src/redis/codes.generated.ts";
import type { Reply } from "../../src/tools/testing/keyspace.ts";

/** Names of the numbers with which replies begin. */
const OUTCOMES = new Map(
  [
    "OWNER",
    "MINE",
    "HELD",
    "GONE",
    "RELEASED",
    "TAKEN",
    "RENEWED",
    "BLOCKED",
    "DIFFERS",
    "CROWDED",
    "STALE",
  ].flatMap((name) =>
    name in codes ? [[(codes as Record<string, number>)[name] as number, name] as const] : [],
  ),
);

/** A hold's id ends with its number. */
export const short = (word: string): string =>
  word.replace(/host(\d+):\d+:[0-9a-f]{16}:?0*/g, "p$1#").slice(0, 80);

/** The keys without their common parts, and the arguments. */
export function shown({ keys, argv }: Call): string {
  const names = [...new Set(keys.full.map((key) => /\{(.*?)\}/.exec(key)?.[1] ?? key))];
  return `{${names.join(", ")}} ${argv.map((word) => short(String(word))).join(" ")}`;
}

export function shownReply(reply: Reply | Error): string {
  if (reply instanceof Error) return `error ${reply.message}`;
  if (typeof reply === "number") return OUTCOMES.get(reply) ?? String(reply);
  if (!Array.isArray(reply)) return short(String(reply));
  const [first, ...rest] = reply;
  const outcome = typeof first === "number" ? OUTCOMES.get(first) : undefined;
  return short(`${outcome ?? String(first)} ${JSON.stringify(rest)}`);
}

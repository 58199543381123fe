import { type Checked, checkOptions, checkText, type Rule, refuse, signal } from "../validate.ts";
import type { ListedKind } from "./listed.ts";

const WHAT = "Cannot list locks";

const KINDS: readonly ListedKind[] = ["lock", "readWrite", "semaphore", "election", "redisson"];
const isKind = (one: unknown): boolean => KINDS.some((kind) => kind === one);

const kind: Rule<ListedKind | readonly ListedKind[]> = {
  wanted: `one or several of ${KINDS.join(", ")}`,
  fits: (value) => (Array.isArray(value) ? value.length > 0 && value.every(isKind) : isKind(value)),
  type: "string",
  fallback: KINDS.filter((one) => one !== "redisson"),
};

const match: Rule<string> = {
  wanted: "a pattern such as order:*",
  fits: (value) => typeof value === "string",
  fallback: "*",
};

const RULES = { match, kind, signal };

/** No name is longer. */
const PATTERN_MAX = 1_024;

/** @throws TypeError or RangeError for bad options. */
export function checkList(
  options: unknown,
): Checked<typeof RULES> & { readonly kinds: ReadonlySet<ListedKind> } {
  const checked = checkOptions(WHAT, RULES, options);
  checkText(WHAT, "match", checked.match);
  if (checked.match.length > PATTERN_MAX)
    throw refuse(RangeError, WHAT, "match", `at most ${PATTERN_MAX} characters`, checked.match);
  return { ...checked, kinds: new Set([checked.kind].flat()) };
}

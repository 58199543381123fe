// Arguments of the calls that are about the holder of a lock.
import { RECALL_WAIT } from "../defaults.ts";
import { quote } from "../errors.ts";
import { LABEL } from "../label.ts";
import { checkOptions, isWhole, type Rule, time } from "../validate.ts";
import type { LockKind, Meant } from "../waiting/lock-kind.ts";

/** ms. */
export const checkRecall = (name: string, options: unknown): number =>
  checkOptions(`Cannot recall ${quote(name)}`, { wait: time(1, RECALL_WAIT) }, options).wait;

const TOKEN: Rule<number | undefined> = {
  wanted: "a whole number from 1 to 2^53-1, as inspect() shows it",
  fits: (value) => isWhole(value, 1, Number.MAX_SAFE_INTEGER),
  type: "number",
  fallback: undefined,
};

const HOLDER: Rule<string | undefined> = {
  wanted: "the id of a holder, as inspect() and list() show it",
  fits: (value) => typeof value === "string" && value !== "",
  type: "string",
  fallback: undefined,
};

const FORCE = { label: LABEL, token: TOKEN, holder: HOLDER };

/** Null: none is given. @throws TypeError, RangeError */
export function checkForceUnlock(
  name: string,
  options: unknown,
  { hasTokens, protocol }: Pick<LockKind, "hasTokens" | "protocol">,
): { label: string | null; meant: Meant } {
  const what =
    protocol === "election"
      ? `Cannot end the term of ${quote(name)} by force`
      : `Cannot unlock ${quote(name)} by force`;
  const { label = null, token = null, holder = null } = checkOptions(what, FORCE, options);
  if (token !== null && !hasTokens)
    throw new TypeError(`${what}: its kind has no tokens; name the holder by its id: { holder: party.id }`);
  return { label, meant: { holder, token } };
}

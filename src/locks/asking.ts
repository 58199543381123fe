// What the calls are given that ask Redis, or a holder, about a lock.
import { ASK_WAIT, LABEL_BYTES_MAX } from "../defaults.ts";
import { quote } from "../errors.ts";
import { checkOptions, checkText, type Rule, time } from "../validate.ts";

/** ms. */
export const checkAsk = (name: string, options: unknown): number =>
  checkOptions(`Cannot ask the holder of ${quote(name)}`, { wait: time(1, ASK_WAIT) }, options).wait;

const LABEL: Rule<string | undefined> = {
  wanted: `a string of 1 to ${LABEL_BYTES_MAX} bytes of UTF-8`,
  fits: (value) => typeof value === "string" && value !== "" && Buffer.byteLength(value) <= LABEL_BYTES_MAX,
  type: "string",
  fallback: undefined,
};

/** The label; null: none. */
export function checkForceUnlock(name: string, options: unknown): string | null {
  const what = `Cannot unlock ${quote(name)} by force`;
  const { label } = checkOptions(what, { label: LABEL }, options);
  return label === undefined ? null : checkText(what, "label", label);
}

// The label of a caller or a client, for people.
import { LABEL_BYTES_MAX } from "../defaults.ts";
import type { Rule } from "./validate.ts";

export const LABEL: Rule<string | undefined> = {
  wanted: `a well-formed string of 1 to ${LABEL_BYTES_MAX} bytes of UTF-8`,
  fits: (value) =>
    typeof value === "string" &&
    value !== "" &&
    Buffer.byteLength(value) <= LABEL_BYTES_MAX &&
    value.isWellFormed(),
  type: "string",
  fallback: undefined,
};

/**
 * As one word of letters, digits and `_.-%`: it is part of ids, channels and keys' values, where no
 * other character may end it.
 */
export const encodeLabel = (label: string | null): string =>
  encodeURIComponent(label ?? "").replace(
    /[!'()*~]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** Null: there is none, or another library wrote it. A `/` after it is not part of it. */
export function decodeLabel(word: string): string | null {
  try {
    return decodeURIComponent(word.replace(/\/$/, "")).slice(0, LABEL_BYTES_MAX) || null;
  } catch {
    return null;
  }
}

/**
 * `word`: the label with which a call asked. If there is none, the label of its client, whose id
 * begins with it.
 */
export const labelOf = (word: string, client: string): string | null =>
  decodeLabel(word) ?? decodeLabel(client.slice(0, client.indexOf("/") + 1));

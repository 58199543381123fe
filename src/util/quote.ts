// Names in messages.
import { piecesOf, visible } from "./visible.ts";

/** Several names in messages: the first few. */
export function quoteAll(names: readonly string[]): string {
  if (names.length <= 4) return names.map(quote).join(", ");
  return `${quoteAll(names.slice(0, 3))} and ${names.length - 3} more`;
}

/** A name in messages: quoted, escaped, never longer than a line. */
export const quote = (name: string): string => `'${short(escaped(name.slice(0, 4 * SHORT)))}'`;

/** The same in full, for people who copy it: the command line shows different names differently. */
export const quoteWhole = (name: string): string => `'${escaped(name)}'`;

const escaped = (text: string): string => visible(text).replaceAll("'", "\\'");

/** The first 99 characters of an escaped text, without cutting an escape. */
export function short(text: string): string {
  if (text.length <= SHORT) return text;
  let kept = "";
  for (const one of piecesOf(text)) {
    if (kept.length + one.length >= SHORT) break;
    kept += one;
  }
  return `${kept}…`;
}

const SHORT = 100;

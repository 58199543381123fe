// The stored form of a result: what a body returned, and what others get of it.
import { FingerprintError, LockFormatError, ResultError } from "../api/errors.ts";
import type { Remembered } from "../api/remember.ts";
import type { Kept } from "../redis/replies.ts";
import type { Result } from "../wires/remember.ts";

/** The longest result, in bytes of UTF-8. */
const MOST = 64 * 1_024;

/** What `keep` counts from; see lua/remember/result.lua. */
const FORM = /^1([vux]) (\d{16}) (\d{16}) \d{16} \d+ ([!-~]+) /;

/**
 * What the body's value is stored as, and why it cannot be: then it is remembered that the body has
 * run.
 */
export function encode(
  value: unknown,
  keep: number,
  fingerprint: string | undefined,
): { readonly result: Result; readonly why: string | null; readonly cause?: unknown } {
  const of = { keep, fingerprint: fingerprint ?? "-" };
  const none = { ...of, state: "x", json: "" } as const;
  if (value === undefined) return { result: { ...of, state: "u", json: "" }, why: null };
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (cause) {
    return { result: none, why: "it has no JSON form", cause };
  }
  if (json === undefined) return { result: none, why: "it has no JSON form" };
  const bytes = Buffer.byteLength(json);
  if (bytes > MOST) return { result: none, why: `it has ${bytes} bytes of JSON, and ${MOST} are possible` };
  return { result: { ...of, state: "v", json }, why: null };
}

/** What a result says to a caller. @throws ResultError; FingerprintError */
export function decode<T>(name: string, kept: Kept, fingerprint: string | undefined): Remembered<T> {
  const [head, state, token, at, of] = FORM.exec(kept.text) ?? [];
  if (head === undefined) throw new LockFormatError(name, Number(kept.text[0]));
  if (fingerprint !== undefined && of !== fingerprint) throw new FingerprintError(name);
  if (state === "x") throw new ResultError(name, "the caller whose body it was knows why");
  const value = state === "u" ? undefined : JSON.parse(kept.text.slice(head.length));
  return { value, ran: false, token: Number(token), at: Math.floor(Number(at) / 1_000) };
}

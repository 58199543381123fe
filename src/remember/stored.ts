// The stored form of a result: what a body returned, and what others get of it.
import { FingerprintError, ResultError } from "../api/errors.ts";
import type { Remembered } from "../api/remember.ts";
import type { Kept, Result } from "../redis/replies.ts";

/** The longest result, in bytes of UTF-8. */
const MOST = 64 * 1_024;

/**
 * What the body's value is stored as, and why it cannot be: then it is remembered that the body has
 * run.
 */
export function encode(value: unknown, given: string | undefined): Encoded {
  const fingerprint = stored(given);
  if (value === undefined) return { result: { state: "u", fingerprint, json: "" }, why: null };
  const none: Result = { state: "x", fingerprint, json: "" };
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (cause) {
    return { result: none, why: "it has no JSON form", cause };
  }
  if (json === undefined) return { result: none, why: "it has no JSON form" };
  const bytes = Buffer.byteLength(json);
  if (bytes > MOST) return { result: none, why: `it has ${bytes} bytes of JSON, and ${MOST} are possible` };
  return { result: { state: "v", fingerprint, json }, why: null };
}

/** "-": none. So one that has dashes only gets one more. */
const stored = (fingerprint = ""): string => fingerprint.replace(/^-*$/, "$&-");

interface Encoded {
  readonly result: Result;
  readonly why: string | null;
  readonly cause?: unknown;
}

/** What a result says to a caller. @throws ResultError; FingerprintError */
export function decode<T>(
  name: string,
  { state, token, at, json, ...kept }: Kept,
  fingerprint: string | undefined,
): Remembered<T> {
  if (fingerprint !== undefined && kept.fingerprint !== stored(fingerprint)) throw new FingerprintError(name);
  if (state === "x") throw new ResultError(name, "the caller whose body it was knows why");
  return {
    value: state === "u" ? undefined : parse(name, json),
    ran: false,
    token,
    at: Math.floor(at / 1_000),
  };
}

function parse(name: string, json: string) {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw new ResultError(
      name,
      "another program has put something else than JSON in its place",
      undefined,
      cause,
    );
  }
}

import type { Listed, LockEvents } from "../../index.ts";
import { NAME_BYTES_MAX } from "../../inside.ts";
import type { Reported } from "./shown.ts";

// The reports that observed processes write and the page reads: entries of one stream, each for some
// seconds of one process.

/** The stream. It is not a key of a lock, and no lock needs it. */
export const STREAM = "holdfast:observed";
/** ms that it lives after the last entry, and about how many entries it has. */
export const KEPT = 3_600_000;
export const ENTRIES = 20_000;

/** The report of one process about some seconds. */
export interface Told {
  /** The `id` of its client. */
  readonly client: string;
  /**
   * By name and step (`stepOf`) of the wait: how many calls got the lock or gave up after such a
   * wait.
   */
  readonly waits: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Single calls: the latest ones, if there were many. */
  readonly calls: readonly ToldCall[];
  /** Why no messages arrived there in these seconds. Left out: they did. */
  readonly deaf?: string;
}

/**
 * A call for a lock: at its end, or while it holds the lock for long. Of one call, by `call` and
 * `name`, the last report counts.
 */
export interface ToldCall
  extends Pick<Reported, "call" | "how" | "ago" | "waitedFor" | "heldFor" | "why" | "site"> {
  readonly name: string;
  /** Locks of several kinds may have one name. */
  readonly kind: ToldKind;
  /** Its fencing token; null: its kind has none. */
  readonly token: number | null;
  /** ms that its lease lasts from a renewal; null: none was renewed. */
  readonly lease: number | null;
}

/** The method that the caller used. */
type ToldKind = Parameters<LockEvents["acquire"]>[0]["kind"];

/**
 * The kind of the lock in a list. Null: it is in none. A call for several locks does not say of which
 * kind each is.
 */
const LISTED: Readonly<Record<ToldKind, Listed["kind"] | "any" | null>> = {
  ...{ lock: "lock", fair: "lock", read: "readWrite", write: "readWrite", semaphore: "semaphore" },
  ...{ election: "election", remember: "remember", redisson: "redisson", redissonFenced: "redisson" },
  ...{ multi: "any", spin: null, once: null, quorum: null },
};

/** Was this call for a lock of this kind? */
export function isOfKind({ kind }: Pick<ToldCall, "kind">, wanted: Listed["kind"]): boolean {
  const listed = LISTED[kind];
  return listed === wanted || listed === "any";
}

/** Waits are counted in steps, four for each doubling of the time. */
export const stepOf = (ms: number): number => Math.ceil(4 * Math.log2(ms + 1));
/** The longest wait of a step, in ms. */
export const longestOf = (step: number): number => Math.round(2 ** (step / 4) - 1);

/** The limits for the names of an entry, for the calls in it that have ended, and for those that last. */
export const NAMES = 100;
export const ENDED = 50;
export const LASTING = 50;

/** The limits for the characters of an entry, of a client's id and of a reason. */
const LONGEST = 1_000_000;
const LONGEST_ID = 2_000;
const LONGEST_WHY = 100;
export const LONGEST_SITE = 300;
export const LONGEST_DEAF = 1_000;
/** A wait of this step is longer than any clock can measure. */
const LAST_STEP = 220;
/** The limit for the calls of one process in some seconds. */
const MOST_CALLS = 1e9;

/**
 * Null: `observe()` has not written this. Any program with the few rights of an observed process may
 * write to the stream, so the whole entry is checked here before it is used.
 */
export function decodeTold(text: string): Told | null {
  if (text.length > LONGEST) return null;
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isRecord(read)) return null;
  const { client, waits, calls, deaf } = read;
  if (!isText(client, LONGEST_ID) || !areWaits(waits) || !areCalls(calls)) return null;
  if (deaf === undefined) return { client, waits, calls };
  return isText(deaf, LONGEST_DEAF) ? { client, waits, calls, deaf } : null;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown, longest: number): value is string =>
  typeof value === "string" && value !== "" && value.length <= longest;
const isName = (value: unknown): value is string => isText(value, NAME_BYTES_MAX);
const isTime = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;

function areWaits(waits: unknown): waits is Told["waits"] {
  if (!isRecord(waits)) return false;
  const named = Object.entries(waits);
  return named.length <= NAMES && named.every(([name, steps]) => isName(name) && areSteps(steps));
}

const areSteps = (steps: unknown): boolean =>
  isRecord(steps) &&
  Object.entries(steps).every(
    ([step, count]) =>
      /^\d{1,3}$/.test(step) &&
      Number(step) <= LAST_STEP &&
      isTime(count) &&
      Number.isInteger(count) &&
      count <= MOST_CALLS,
  );

const areCalls = (calls: unknown): calls is ToldCall[] =>
  Array.isArray(calls) && calls.length <= ENDED + LASTING && calls.every(isCall);

type Check = (value: unknown) => boolean;
const orNull =
  (fits: Check): Check =>
  (value) =>
    value === null || fits(value);
const HOW: readonly unknown[] = ["holds", "released", "lost", "giveup"];
const CALL: Readonly<Record<keyof ToldCall, Check>> = {
  name: isName,
  kind: (value) => typeof value === "string" && Object.hasOwn(LISTED, value),
  call: isTime,
  how: (value) => HOW.includes(value),
  ago: isTime,
  waitedFor: isTime,
  heldFor: orNull(isTime),
  why: orNull((value) => isText(value, LONGEST_WHY)),
  token: orNull(isTime),
  lease: orNull(isTime),
  site: orNull((value) => isText(value, LONGEST_SITE)),
};
const FIELDS = Object.entries(CALL);

const isCall = (call: unknown): boolean =>
  isRecord(call) &&
  Object.keys(call).length === FIELDS.length &&
  FIELDS.every(([name, fits]) => Object.hasOwn(call, name) && fits(call[name])) &&
  // Only what has held the lock can tell for how long.
  (call.heldFor === null) === (call.how === "giveup");

import { NAME_BYTES_MAX } from "../../inside.ts";

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
  /**
   * Single calls: what, the lock's name, how many ms ago, after how many ms, why. The latest ones,
   * if there were many.
   */
  readonly events: readonly (readonly [
    "acquire" | "giveup" | "lost",
    string,
    number,
    number,
    string | null,
  ])[];
  /** Why no messages arrived there in these seconds. Left out: they did. */
  readonly deaf?: string;
}

/** Waits are counted in steps, four for each doubling of the time. */
export const stepOf = (ms: number): number => Math.ceil(4 * Math.log2(ms + 1));
/** The longest wait of a step, in ms. */
export const longestOf = (step: number): number => Math.round(2 ** (step / 4) - 1);

/** The limits for the names and the single calls of an entry. */
export const NAMES = 100;
export const EVENTS = 50;

/** The limits for the characters of an entry, of a client's id and of a reason. */
const LONGEST = 1_000_000;
const LONGEST_ID = 2_000;
const LONGEST_WHY = 100;
export const LONGEST_DEAF = 1_000;
/** A wait of this step is longer than any clock can measure. */
const LAST_STEP = 220;
/** The limit for the calls of one process in some seconds. */
const MOST_CALLS = 1e9;
const KINDS: readonly unknown[] = ["acquire", "giveup", "lost"];

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
  const { client, waits, events, deaf } = read;
  if (!isText(client, LONGEST_ID) || !areWaits(waits) || !areEvents(events)) return null;
  if (deaf === undefined) return { client, waits, events };
  return isText(deaf, LONGEST_DEAF) ? { client, waits, events, deaf } : null;
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

const areEvents = (events: unknown): events is Told["events"] =>
  Array.isArray(events) && events.length <= EVENTS && events.every(isEvent);

function isEvent(event: unknown): boolean {
  if (!Array.isArray(event) || event.length !== 5) return false;
  const [what, name, ago, after, why] = event as unknown[];
  return (
    KINDS.includes(what) &&
    isName(name) &&
    isTime(ago) &&
    isTime(after) &&
    (why === null || isText(why, LONGEST_WHY))
  );
}

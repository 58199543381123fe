import { PERMITS } from "../arenas/arena.ts";
import type { LockKind } from "../history/events.ts";
import type { Call, Hold, Setting, Span, Story } from "./story.ts";

/** What a lock of one kind allows: all that the rules know about kinds. */
interface Allows {
  /** How many units there are. Holds exclude each other when together they have more. */
  readonly units: number;
  /** How many of them one call takes; null: as many as it asks for. */
  readonly takes: number | null;
  /**
   * "grow": each holder's token is larger than all before it. "shared": the same, but readers with
   * no writer between them share one. "apart": no two holders have the same one, but they are inside
   * together and may hear of it in another order. "times": the server's ms when a run began.
   */
  readonly tokens: "grow" | "shared" | "apart" | "times";
  /** Redis keeps waiters in order, so none starves. Else the caller that asks first is first. */
  readonly isQueued: boolean;
  /** What fits beside the present holders is given at once. */
  readonly isPrompt: boolean;
  /** Its model for Porcupine. */
  readonly model: "lock" | "readWrite" | "semaphore";
}

/** As many units as one holder takes that is alone. */
const ALL = 1_000_000;

const exclusive: Allows = {
  units: ALL,
  takes: ALL,
  tokens: "grow",
  isQueued: true,
  isPrompt: false,
  model: "lock",
};
const unqueued: Allows = { ...exclusive, isQueued: false };
const writer: Allows = { ...exclusive, isPrompt: true, model: "readWrite" };

const ALLOWS: Readonly<Record<LockKind, Allows>> = {
  lock: exclusive,
  fairLock: exclusive,
  multiLock: exclusive,
  election: exclusive,
  redissonLock: unqueued,
  spinLock: unqueued,
  quorumLock: unqueued,
  once: { ...unqueued, tokens: "times" },
  remember: exclusive,
  writeLock: writer,
  readLock: { ...writer, takes: 1, tokens: "shared" },
  permit: { ...writer, units: PERMITS, takes: null, tokens: "apart", model: "semaphore" },
};

export const allows = ({ kind }: Pick<Call, "kind">): Allows => ALLOWS[kind];

/** How many units this call takes. */
export const taken = (call: Call): number => allows(call).takes ?? call.units ?? 1;

/** How many units these holds have together. */
export const takenBy = (holds: readonly Hold[]): number =>
  holds.reduce((sum, { call }) => sum + taken(call), 0);

/** A number of units, and when it may have been in force. */
interface InForce extends Span {
  readonly units: number;
}

/**
 * How many units a lock has: what its kind says, until callers set another number. A number may be
 * in force from when it is asked for until a later one surely is. When a server has forgotten, it
 * may be once more, until one that is asked for after that surely is.
 */
export function unitsOf({ settings, forgettings }: Story, { lock, kind }: Call): readonly InForce[] {
  const never = Number.NEGATIVE_INFINITY;
  const { units: permits } = ALLOWS[kind];
  const byCode: Setting = { lock, permits, asked: never, answered: never, stands: true };
  const ours = settings.filter((one) => one.lock === lock);
  const untilAfter = (at: number): number =>
    Math.min(
      Number.POSITIVE_INFINITY,
      ...ours.flatMap(({ stands, asked, answered }) => (stands && asked > at ? [answered] : [])),
    );
  return [byCode, ...ours].flatMap(({ permits: units, asked, answered }) => [
    { units, from: asked, to: untilAfter(answered) },
    ...forgettings
      .filter(({ to }) => to >= asked)
      .map(({ from, to }) => ({ units, from: Math.max(from, asked), to: untilAfter(to) })),
  ]);
}

/** The largest of these numbers that may have been in force at any moment between two times. */
export const mostUnits = (numbers: readonly InForce[], from: number, to: number): number =>
  Math.max(...numbers.filter((one) => one.from <= to && one.to >= from).map(({ units }) => units));

/** Tokens of writers that became readers: the readers beside them have the same one. */
export const handedOn = (holds: readonly Hold[]): ReadonlySet<number> =>
  new Set(holds.flatMap(({ call, token }) => (call.writer === undefined ? [] : [token])));

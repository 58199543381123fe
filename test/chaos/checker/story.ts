import type { Event, LockKind } from "../history/events.ts";

/** One call for a lock, from the question to the end of what came of it. Times are µs. */
export interface Call {
  readonly by: string;
  readonly number: number;
  readonly lock: string;
  readonly kind: LockKind;
  /** ms; null: for ever. */
  readonly wait: number | null;
  /** What only some kinds have, as in the event. */
  readonly lease?: number | undefined;
  readonly units?: number | undefined;
  readonly every?: number | undefined;
  readonly aligned?: boolean | undefined;
  readonly writer?: number | undefined;
  readonly listens?: boolean | undefined;
  readonly again?: number | undefined;
  readonly asked: number;
  aborted: number | null;
  answered: { at: number; with: "lease" | "busy" | "error" } | null;
  hold: Hold | null;
}

/** A caller's time with a lock, as the caller saw it. */
export interface Hold {
  readonly call: Call;
  readonly token: number;
  readonly from: number;
  /** The lease's own deadline, as far as it was ever told. */
  deadline: number;
  lost: { at: number; reason: string } | null;
  unlock: number | null;
  unlocked: { at: number; error: string | null } | null;
  /** The first time that its holder was told, by a look of its own, that it does not hold. */
  unheld: number | null;
  /** The first and the last time that its process read on the machine's monotonic clock right before its lease said "held". */
  claims: { first: number; last: number } | null;
  /** From then on its holder did not count on it any more. Set when the whole history is known. */
  until: number;
}

/** A worker from its start to its end. */
export interface Life {
  readonly by: string;
  up: number;
  dead: { at: number; meant: boolean; how: string } | null;
  /** When it could not do anything: stopped, or its event loop blocked. */
  readonly standing: { from: number; to: number }[];
  readonly unhandled: { at: number; error: string }[];
}

/** A fault from its begin to the end of its cause. */
export interface Trouble {
  readonly number: number;
  readonly kind: string;
  readonly from: number;
  to: number;
}

/** Was a server's clock stepped? That of a worker is the worker's own. */
export const stepsServerClock = ({ kind }: Trouble): boolean =>
  kind.includes("clock") && !kind.includes("worker");

/** The server may have forgotten what it had promised before: on our clock, and in the server's µs. */
export interface Forgetting {
  readonly since: number;
  readonly at: number;
  readonly from: number;
  readonly to: number;
}

/** A leader that an observer was shown, until it was shown something else. Times are µs. */
export interface Shown {
  readonly by: string;
  readonly lock: string;
  readonly token: number;
  /** Of its proclamation. */
  readonly number: number;
  readonly from: number;
  to: number;
}

/** A question for another number of permits. */
export interface Setting {
  readonly lock: string;
  readonly permits: number;
  readonly asked: number;
  /** When it had an answer, and whether that says that it stands. */
  answered: number;
  stands: boolean;
}

/** A history, told by call, worker and fault. */
export interface Story {
  readonly calls: Call[];
  /** By lock, in the order in which their holders got them. */
  readonly holds: Map<string, Hold[]>;
  readonly lives: Map<string, Life>;
  readonly troubles: Trouble[];
  readonly forgettings: Forgetting[];
  /** Of each observer, in order. */
  readonly shown: Shown[];
  readonly settings: Setting[];
  /** When all callers had had their time to finish. */
  readonly over: number;
}

/** The call that an event is about, as a key. */
export const callKey = (by: string, call: number): string => `${by}#${call}`;

/** The worker's moments in which it could do nothing, between two times, in µs. */
export function stoodStill(life: Life | undefined, from: number, to: number): number {
  let sum = 0;
  for (const one of life?.standing ?? []) sum += Math.max(0, Math.min(one.to, to) - Math.max(one.from, from));
  return sum;
}

/** The last moment of which a history tells anything. */
export const endOf = (events: readonly Event[]): number => events.at(-1)?.at ?? 0;

import type { CallEvent, LockKind } from "../history/events.ts";

/** A stretch of time, in µs. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * One call for a lock, from the question to the end of what came of it. Times are µs, but for what
 * the event gives in ms.
 */
export interface Call extends Omit<Extract<CallEvent, { is: "ask" }>, "is" | "call" | "how"> {
  readonly by: string;
  readonly number: number;
  readonly kind: LockKind;
  readonly asked: number;
  aborted: number | null;
  answered: { at: number; with: "lease" | "busy" | "result" | "error" } | null;
  hold: Hold | null;
  /** What it got of the run of another call. */
  got: Got | null;
}

/** The result of a run, as a call got it then. */
export interface Got {
  readonly at: number;
  readonly token: number;
  readonly value: string;
  readonly stored: number;
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
  unlocked: { at: number; error: string | null; stored?: number | undefined } | null;
  /** The first time that its holder was told, by a look of its own, that it does not hold. */
  unheld: number | null;
  /**
   * The first and the last time that its process read on the machine's monotonic clock right before
   * its lease said "held".
   */
  claims: { first: number; last: number } | null;
  /** From then on its holder did not count on it any more. Set when the whole history is known. */
  until: number;
}

/** A worker from its start to its end. */
export interface Life {
  readonly by: string;
  dead: { at: number; meant: boolean; how: string } | null;
  /** When it could not do anything: stopped, or its event loop blocked. */
  readonly standing: { from: number; to: number }[];
  readonly unhandled: { at: number; error: string }[];
}

/** A fault from its begin to the end of its cause. */
export interface Trouble extends Span {
  readonly kind: string;
  to: number;
}

/** Between these moments, of our clock and of tokens, a server may have forgotten its promises. */
export interface Forgetting extends Span {
  readonly tokens: Span;
}

/** A leader that an observer was shown, until it was shown something else. */
export interface Shown extends Span {
  readonly by: string;
  readonly lock: string;
  readonly token: number;
  /** Of its proclamation. */
  readonly number: number;
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

/** From when a worker had a result forgotten until it had an answer, and whether that says that it is. */
export interface Forget extends Span {
  readonly by: string;
  readonly lock: string;
  to: number;
  isDone: boolean;
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
  readonly forgets: Forget[];
  /** When all callers had had their time to finish. */
  readonly over: number;
}

/** The call that an event is about, as a key. */
export const callKey = (by: string, call: number): string => `${by}#${call}`;

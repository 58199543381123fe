import { SHORT_LEASE, VALUE_BYTES_MAX } from "../defaults.ts";
import { quote } from "../util/quote.ts";
import type { LockLostError } from "./errors.ts";
import { LABEL } from "./label.ts";
import type { ForceUnlockOptions } from "./options.ts";
import type { Party } from "./party.ts";
import {
  type Checked,
  checkBody,
  checkOptions,
  checkValue,
  orInfinity,
  type Rule,
  refuse,
  signal,
  time,
} from "./validate.ts";

/** What a leader does in its term. */
export type LeaderBody<T> = (term: Term) => T | PromiseLike<T>;

/** The result of `runAsLeader()`. */
export interface LeadResult<T> {
  /** How many terms it has led. 0: its signal aborted before it led. */
  readonly terms: number;
  /** What the body returned while it led. Undefined: the signal aborted first. */
  readonly value: T | undefined;
}

/**
 * An election by name: of all candidates, in any process, one leads at a time, and every client can
 * see which. Cheap and stateless; the leadership itself is a term.
 */
export interface Election {
  readonly name: string;

  /**
   * Waits until this client leads, after all earlier candidates. Its value is published before the
   * call resolves.
   *
   * @param options.value shown to observers: at most 4 096 bytes of UTF-8. Default: "".
   * @param options.wait ms to wait; Infinity (the default) is allowed, and 0 asks once.
   * @param options.signal cancels only the wait: the call rejects with `signal.reason`.
   * @throws TypeError or RangeError for bad options, before anything is sent; LockTimeoutError when
   *   others led for `options.wait` ms; LockUnavailableError when Redis does not answer;
   *   ClientClosedError after `close()`.
   * @example
   * const term = await election.campaign({ value: "10.0.0.7:8080" });
   * try { await work({ signal: term.signal, fence: term.token }); } finally { await term.resign(); }
   */
  campaign(options?: CampaignOptions): Promise<Term>;

  /**
   * The form to prefer: campaigns, runs the body, and resigns after it. When the term is
   * lost it waits for the body to end, and campaigns again after a pause, so a process never runs
   * two bodies of one call.
   *
   * | the body | while it leads | after a loss |
   * |---|---|---|
   * | returns | resolves with that | campaigns again |
   * | throws | resigns, and rejects with that error | reports the error as an `error` event, unless it is the loss itself, and campaigns again after a longer pause: 0.15 to 5 s |
   *
   * @param options.value shown to observers: at most 4 096 bytes of UTF-8. Default: "".
   * @param options.signal ends the candidacy: a candidate stops waiting, and a leader's
   *   `term.signal` aborts. The call then resolves. The body may throw the abort: `signal.reason`,
   *   or an error whose name is "AbortError".
   * @param body gets the term, whose signal aborts when the term is lost, and also when
   *   `options.signal` does.
   * @returns how many terms it has led, and what the body returned.
   * @throws what the body threw while it led; TypeError or RangeError for bad arguments;
   *   ClientClosedError after `close()`; LockUnavailableError when Redis does not answer before its
   *   first term: later that is an `error` event, and the call tries again.
   * @example
   * const options = { value: "10.0.0.7:8080", signal: stopping };
   * const { terms } = await election.runAsLeader(options, async (term) => {
   *   while (!term.signal.aborted) await schedule({ fence: term.token });
   * });
   */
  runAsLeader<T>(body: LeaderBody<T>): Promise<LeadResult<T>>;
  runAsLeader<T>(options: LeadOptions, body: LeaderBody<T>): Promise<LeadResult<T>>;

  /**
   * Yields the leader whenever the leader or its value changes, and null while there is none, or it
   * is unknown. It shows only Redis's answers, and each only until the answered end of the term:
   * null after a leader's crash, and while Redis does not answer. A slow consumer gets the newest
   * state and no backlog. All observers of one client share one subscription and one query;
   * `break`, `return()`, the signal and `close()` end it. It keeps the process alive.
   *
   * @param options.signal ends the observation without an error.
   * @throws TypeError or RangeError for bad options; from `next()` ClientClosedError when the
   *   client is closed before it begins, and LockUnavailableError when the connection is closed for
   *   good. Other failures of Redis are `error` events, and the client tries again.
   * @example
   * for await (const leader of election.observe({ signal: stopping })) {
   *   if (leader) connect(leader.value); else disconnect();
   * }
   */
  observe(options?: ObserveOptions): AsyncIterableIterator<Leader | null, undefined>;

  /**
   * Reads the leader once. Null: there is none, or it was elected a moment ago and has not
   * published its value yet.
   *
   * @throws LockUnavailableError; ClientClosedError after `close()`.
   * @example
   * const leader = await election.leader();
   * // { id: "host:17:9f…", host: "host", pid: 17, value: "10.0.0.7:8080", token: 1795…, … } or null
   */
  leader(): Promise<Leader | null>;

  /**
   * For people: ends the term of the leader, and the next candidate leads. The leader's signal
   * aborts (reason "revoked"): it subscribed when its term began. A leader whose subscription was
   * refused, or is lost at this moment, learns of it at its next renewal (reason "taken" or
   * "gone"). `runAsLeader` then campaigns again, after the other candidates. Until the leader
   * notices, only its token keeps out its writes.
   *
   * @param options.label 1 to 64 bytes of UTF-8, for the leader: `LockLostError.by`, and in its message.
   * @param options.holder ends only the term of this leader: its `id`, as `leader()` or `list()`
   *   shows it. Default: any leader.
   * @param options.token ends only the term with this token.
   * @returns false: there is no leader, or another term, and nothing was done.
   * @throws TypeError or RangeError for bad options; LockUnavailableError; ClientClosedError after `close()`.
   * @example
   * const leader = await election.leader();
   * if (leader) await election.forceResign({ holder: leader.id, label: "alice, ticket 4711" });
   */
  forceResign(options?: ForceUnlockOptions): Promise<boolean>;
}

/** The leader of an election, as it has written to Redis. Its `id` is that of its client. */
export interface Leader extends Party {
  /** The value that it published last: usually an address. */
  readonly value: string;
  /** The fencing token of its term: grows from term to term. */
  readonly token: number;
}

/**
 * The time of one leader, from its election to its end. The watchdog renews it. End it with
 * `resign()`, or let `await using` do so.
 *
 * A client only believes that it leads: a process that was paused still believes so for a moment
 * when it resumes. The token is the proof. Send it with every write, as with a lease; `fencedSet`
 * takes a term as its `fence`.
 *
 * @example
 * await using term = await election.campaign({ value: "10.0.0.7:8080" });
 * await work({ signal: term.signal, fence: term.token });
 */
export interface Term {
  /** The election's name. */
  readonly name: string;
  /** The fencing token: grows from term to term, below 2^53. */
  readonly token: number;
  /** The value proclaimed last, even if Redis has not confirmed it yet. */
  readonly value: string;
  /**
   * Aborts with a LockLostError as soon as this client may no longer lead; never when it resigns.
   * Each read checks the clock, as that of a lease does.
   */
  readonly signal: AbortSignal;
  /**
   * Does this client surely lead at this moment? Computed from both clocks, without a round trip.
   */
  readonly held: boolean;
  /** Why the term was lost. Null: it was not. */
  readonly lost: LockLostError | null;
  /**
   * Call it before what only a leader may do: it detects an end that passed before any timer could fire.
   *
   * @throws LockLostError when the term is lost, LockError `LOCK_RELEASED` after `resign()`.
   */
  assertHeld(): void;
  /** ms until the term is lost unless it is renewed; 0 when it is not held. */
  readonly remaining: number;
  /**
   * Publishes another value to observers. Proclamations are numbered, so a late copy of an earlier one
   * changes nothing.
   *
   * @param value at most 4 096 bytes of UTF-8.
   * @throws TypeError or RangeError for a bad value; LockLostError when the term is lost;
   *   LockUnavailableError when Redis did not confirm it (the next renewals publish it); LockError
   *   `LOCK_RELEASED` after `resign()`.
   * @example
   * await term.proclaim("10.0.0.7:8081");
   */
  proclaim(value: string): Promise<void>;
  /**
   * Ends the term, and hands it at once to the next candidate, if there is one. Calling it again
   * does nothing.
   *
   * @throws LockLostError, once, when the term had been lost before; LockUnavailableError when
   *   Redis did not confirm (it is tried again in the background until the term is over).
   */
  resign(): Promise<void>;
  /** `await using`: the same as `resign()`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** How an election is held. */
export interface ElectionOptions {
  /**
   * How many ms a term lasts unless it is renewed, from 100: a leader renews it every third of that
   * time. After its crash the others wait this long. Each candidate has its own. Default: the
   * client's `leaseTime`, 30 000.
   */
  lease?: number | undefined;
  /**
   * This candidate's name for people: in `leader()`, `observe()` and `locks.list()`, while it waits
   * and while it leads. 1 to 64 bytes of UTF-8. Default: the label of the client.
   */
  label?: string | undefined;
}

/** How a candidate leads. */
export interface LeadOptions {
  /** The value shown to observers: a string of at most 4 096 bytes of UTF-8. Default: "". */
  value?: string | undefined;
  /** Ends the candidacy. */
  signal?: AbortSignal | undefined;
}

/** How a candidate campaigns. */
export interface CampaignOptions extends LeadOptions {
  /**
   * How many ms to wait until it leads; Infinity is allowed, and 0 asks once. Default: Infinity.
   */
  wait?: number | undefined;
  /** Cancels only the wait: the call rejects with `signal.reason`. */
  signal?: AbortSignal | undefined;
}

/** How an election is observed. */
export interface ObserveOptions {
  /** Ends the observation, as `return()` does: without an error. */
  signal?: AbortSignal | undefined;
}

const VALUE: Rule<string> = {
  wanted: `a well-formed string of at most ${VALUE_BYTES_MAX} bytes of UTF-8`,
  fits: (value) =>
    typeof value === "string" && value.isWellFormed() && Buffer.byteLength(value) <= VALUE_BYTES_MAX,
  type: "string",
  fallback: "",
};

const ELECTION = { lease: time(SHORT_LEASE, undefined), label: LABEL };

const LEAD = { value: VALUE, signal };

const CAMPAIGN = { ...LEAD, wait: orInfinity(time(0, Number.POSITIVE_INFINITY)) };

const OBSERVE = { signal };

/** The start of messages about an election that is not created. */
export const CREATE = "Cannot create an election";

export const checkElection = (options: unknown): Checked<typeof ELECTION> =>
  checkOptions(CREATE, ELECTION, options);

/** The arguments of `runAsLeader(body)` or `runAsLeader(options, body)`. */
export function checkLead<Body>(
  name: string,
  args: readonly unknown[],
): Checked<typeof LEAD> & { readonly body: Body } {
  const { options, body } = checkBody<Body>(`Cannot lead ${quote(name)}`, "runAsLeader", args);
  return { ...checkOptions(`Cannot lead ${quote(name)}`, LEAD, options), body };
}

export const checkCampaign = (name: string, options: unknown): Checked<typeof CAMPAIGN> =>
  checkOptions(`Cannot campaign for ${quote(name)}`, CAMPAIGN, options);

export const checkObserve = (name: string, options: unknown): Checked<typeof OBSERVE> =>
  checkOptions(`Cannot observe ${quote(name)}`, OBSERVE, options);

/** Errors truncate the value; it can be 4 KB. */
export function checkProclaimed(name: string, value: unknown): string {
  const what = `Cannot proclaim the leader of ${quote(name)}`;
  if (value === undefined) throw refuse(TypeError, what, "value", VALUE.wanted, value);
  return checkValue(what, "value", value, VALUE);
}

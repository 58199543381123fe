import type { ForceUnlockOptions } from "../options.ts";
import type { Leader } from "../redis/election-replies.ts";
import type { CampaignOptions, LeadOptions, ObserveOptions } from "./options.ts";
import type { Term } from "./term.ts";

/** What a leader does in its term. */
export type LeaderBody<T> = (term: Term) => T | PromiseLike<T>;

/** What became of a `runAsLeader()`. */
export interface LeadResult<T> {
  /** How many terms it has led. 0: its signal aborted before it led. */
  readonly terms: number;
  /** What the body returned while it led. Undefined: the signal aborted first. */
  readonly value: T | undefined;
}

/**
 * An election by name: of all candidates, in whatever process, one leads at a time, and everybody can see which. Cheap and
 * stateless; what leads is a term.
 */
export interface Election {
  readonly name: string;

  /**
   * Waits until this client leads: behind all that were candidates before it. What it has to say of itself is told before it resolves.
   *
   * @param options.value told to observers: at most 4 096 bytes of UTF-8. Default: "".
   * @param options.wait ms to wait; Infinity (the default) is allowed, and 0 asks once.
   * @param options.signal ends the waiting, and only that: the call rejects with `signal.reason`.
   * @throws TypeError or RangeError for bad options, before anything is sent; LockTimeoutError when others led for `options.wait`
   *   ms; LockUnavailableError when Redis does not answer; ClientClosedError after `close()`.
   * @example
   * const term = await election.campaign({ value: "10.0.0.7:8080" });
   * try { await work({ signal: term.signal, fence: term.token }); } finally { await term.resign(); }
   */
  campaign(options?: CampaignOptions): Promise<Term>;

  /**
   * The form to prefer: campaigns, runs the body, and resigns when it has ended. When the term is lost it waits for the body to
   * end, and campaigns again after a pause, so a process never runs two bodies of one call.
   *
   * | the body | while it leads | behind a loss |
   * |---|---|---|
   * | returns | resolves with that | campaigns again |
   * | throws | resigns, and rejects with that error | tells the error as an `error` event, unless it is the loss itself, and campaigns again after a longer pause: 0.15 to 5 s |
   *
   * @param options.value told to observers: at most 4 096 bytes of UTF-8. Default: "".
   * @param options.signal ends the candidacy: a candidate stops waiting, and a leader's body is told by `term.signal`. The call then
   *   resolves. A body may let the abort through: `signal.reason`, or an error whose name is "AbortError".
   * @param body gets the term, whose signal aborts when the term is lost, and also when `options.signal` does.
   * @returns how many terms it has led, and what the body returned.
   * @throws what the body has thrown while it led; TypeError or RangeError for bad arguments; ClientClosedError after `close()`;
   *   LockUnavailableError when Redis does not answer before it has led once: later that is an `error` event, and tried again.
   * @example
   * const options = { value: "10.0.0.7:8080", signal: stopping };
   * const { terms } = await election.runAsLeader(options, async (term) => {
   *   while (!term.signal.aborted) await schedule({ fence: term.token });
   * });
   */
  runAsLeader<T>(body: LeaderBody<T>): Promise<LeadResult<T>>;
  runAsLeader<T>(options: LeadOptions, body: LeaderBody<T>): Promise<LeadResult<T>>;

  /**
   * Yields the leader whenever it is another one, or has another value, and null while nobody leads or nobody knows. Only what
   * Redis has answered is shown, and only until the term ends by that answer, so a leader that has crashed, or a Redis that does
   * not answer, is null. A slow consumer gets the newest state and no backlog. All observers of one client share one subscription and
   * one question; `break`, `return()`, the signal and `close()` end it. The process lives as long as it observes.
   *
   * @param options.signal ends the observation without an error.
   * @throws TypeError or RangeError for bad options; from `next()` ClientClosedError when the client is closed before it begins,
   *   and LockUnavailableError when the connection is closed for good. Other failures of Redis are `error` events, and tried again.
   * @example
   * for await (const leader of election.observe({ signal: stopping })) {
   *   if (leader) connect(leader.value); else disconnect();
   * }
   */
  observe(options?: ObserveOptions): AsyncIterableIterator<Leader | null, undefined>;

  /**
   * Asks once. Null: nobody leads, or the one that was elected a moment ago has not said its value yet.
   *
   * @throws LockUnavailableError; ClientClosedError after `close()`.
   * @example
   * const leader = await election.leader();
   * // { id: "host:17:9f…", host: "host", pid: 17, value: "10.0.0.7:8080", token: 1795…, … } or null
   */
  leader(): Promise<Leader | null>;

  /**
   * For people: ends the term of the leader, and the next candidate leads. The leader's signal aborts (reason "revoked"): it has
   * subscribed when its term began. A leader whose subscription was refused, or is lost at this moment, learns of it at its next
   * renewal (reason "taken" or "gone"). `runAsLeader` campaigns again then, behind those that wait. What it does until then only its
   * token keeps out.
   *
   * @param options.label 1 to 64 bytes of UTF-8, for the leader: `LockLostError.by`, and in its message.
   * @param options.holder ends only the term of this leader: its `id`, as `leader()` or `list()` shows it. Default: whichever leads.
   * @param options.token ends only the term with this token.
   * @returns false: nobody leads, or another term than that runs, and nothing was done.
   * @throws TypeError or RangeError for bad options; LockUnavailableError; ClientClosedError after `close()`.
   * @example
   * const leader = await election.leader();
   * if (leader) await election.forceResign({ holder: leader.id, label: "alice, ticket 4711" });
   */
  forceResign(options?: ForceUnlockOptions): Promise<boolean>;
}

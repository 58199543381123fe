import {
  type CampaignOptions,
  checkCampaign,
  checkLead,
  checkObserve,
  type Election,
  type ElectionOptions,
  type Leader,
  type LeaderBody,
  type LeadResult,
  type ObserveOptions,
  type Term,
} from "../api/election.ts";
import { bodyFailed, ClientClosedError, isLockLost, LockUnavailableError } from "../api/errors.ts";
import type { Events } from "../api/events.ts";
import { encodeLabel } from "../api/label.ts";
import type { ForceUnlockOptions } from "../api/options.ts";
import { nounOf } from "../api/wording.ts";
import { itself } from "../core/lease/shared-lease.ts";
import type { Terms } from "../core/lease/terms.ts";
import { CAMPAIGN_AGAIN, CAMPAIGN_AGAIN_MAX, RECHECK_SPREAD } from "../defaults.ts";
import { checkForceUnlock } from "../locks/arguments.ts";
import { timedOut } from "../locks/timed-out.ts";
import { unavailable } from "../redis/replies.ts";
import { orAbort } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { inspectAs } from "../util/print.ts";
import { doubling } from "../util/random.ts";
import type { Elections } from "./elections.ts";
import { Observer } from "./observer.ts";
import { LeaderTerm } from "./term.ts";

/** What a candidate wants. */
interface Candidacy extends ReturnType<typeof checkCampaign> {
  /** Also ends the leader's work. */
  readonly ending?: AbortSignal | undefined;
}

/** An election as the caller sees it: arguments and terms around the lock manager. */
export class NamedElection implements Election {
  readonly name: string;
  readonly #elections: Elections;
  readonly #terms: Terms;

  /** `lease`: of a term, in ms; left out: the client's. */
  constructor(name: string, elections: Elections, { lease = elections.leaseTime, label }: ElectionOptions) {
    this.name = name;
    this.#elections = elections;
    const terms = { lease, watchdog: true, maxHold: Number.POSITIVE_INFINITY, linger: 0 };
    this.#terms = label === undefined ? terms : { ...terms, label: ` ${encodeLabel(label)}` };
  }

  async campaign(options?: CampaignOptions): Promise<Term> {
    return this.#campaign(checkCampaign(this.name, options));
  }

  async runAsLeader<T>(...args: unknown[]): Promise<LeadResult<T>> {
    const { body, value, signal } = checkLead<LeaderBody<T>>(this.name, args);
    const { events } = this.#elections.manager;
    const candidacy = { value, wait: Number.POSITIVE_INFINITY, signal, ending: signal };
    let [terms, failures] = [0, 0];
    try {
      for (;;) {
        const term = await this.#campaign(candidacy).catch((error: unknown) => {
          // RACE: a Redis that is away for longer than a lease ends the term and refuses the
          // candidate. So the candidate must come back by itself.
          if (terms === 0 || !(error instanceof LockUnavailableError)) throw error;
          events.report(error);
          return null;
        });
        if (term) {
          terms++;
          const ended = await lead(term, body, events);
          if ("value" in ended) return { terms, value: ended.value };
          if (ended.is === "failed") throw ended.error;
          failures = ended.is === "lost" ? 0 : failures + 1;
          if (ended.is === "broken") events.report(bodyFailed(this.name, ended.error));
        } else failures++;
        // Pause, so that after a common loss, such as a deleted key, not all candidates come back
        // at once, and a body that always fails does not loop.
        const ms = doubling(failures, CAMPAIGN_AGAIN, CAMPAIGN_AGAIN_MAX, RECHECK_SPREAD);
        await this.#elections.pause(ms, signal);
      }
    } catch (error) {
      if (signal && isAbortBy(signal, error)) return { terms, value: undefined };
      throw error;
    }
  }

  observe(options?: ObserveOptions): AsyncIterableIterator<Leader | null, undefined> {
    const { signal } = checkObserve(this.name, options);
    return new Observer(() => this.#elections.observation(this.name), signal);
  }

  async leader(): Promise<Leader | null> {
    const { kind, manager } = this.#elections;
    if (manager.isClosed) throw new ClientClosedError(this.name);
    const { leader } = await kind.observe(this.name).catch((error: unknown) => {
      throw unavailable(this.name, "its leader could not be asked for", error, nounOf(kind));
    });
    return leader;
  }

  async forceResign(options?: ForceUnlockOptions): Promise<boolean> {
    const { kind, manager } = this.#elections;
    const { label, meant } = checkForceUnlock(this.name, options, kind);
    if (manager.isClosed) throw new ClientClosedError(this.name);
    const ended = await kind.forceRelease(this.name, label, meant).catch((error: unknown) => {
      throw unavailable(this.name, "its leader could not be forced to resign", error, nounOf(kind));
    });
    return ended > 0;
  }

  toJSON(): object {
    return { name: this.name, lease: this.#terms.lease };
  }

  async #campaign({ value, wait, signal, ending }: Candidacy): Promise<LeaderTerm> {
    const { kind, manager } = this.#elections;
    const until = clocks.mono.now() + wait;
    for (;;) {
      const left = Math.max(0, until - clocks.mono.now());
      const request = { terms: this.#terms, wait: left, signal };
      const shared = await manager.enter(kind, this.name, request, itself);
      if (!shared) return await timedOut(manager, kind, this.name, wait, { heldBy: "somebody else" });
      const term = new LeaderTerm(shared, kind, ending);
      this.#elections.listen(this.name);
      try {
        const proclaimed = term.proclaim(value);
        // RACE: while Redis hangs, the term may run out, or end with the client. Any other loss comes
        // from Redis, which then answers this too.
        const ended = orAbort(shared.signal, proclaimed).catch((error: unknown) => {
          const reason = shared.loss?.reason;
          if (reason !== "gone" && reason !== "taken") throw error;
          return proclaimed;
        });
        await orAbort(signal, ended);
        return term;
      } catch (error) {
        // Observers have not learned that it leads, so it does not. An unconfirmed resignation is
        // tried again in the background.
        term.resign().catch(() => {});
        // RACE: a process that was paused after the message that made it the leader has lost the
        // term by now. It keeps campaigning.
        if (!isLockLost(error)) throw error;
      }
    }
  }
}

/** Did the call or its body end because this signal aborted? */
const isAbortBy = (signal: AbortSignal, error: unknown): boolean =>
  signal.aborted && (error === signal.reason || (error instanceof Error && error.name === "AbortError"));

/** How a body ended: while it led; or after a loss, with or without an error of its own. */
type Ended<T> =
  | { readonly value: T }
  | { readonly is: "failed" | "broken"; readonly error: unknown }
  | { readonly is: "lost" };

/** Runs a body, and ends its term. `events`: receives failures that no caller sees. */
async function lead<T>(term: LeaderTerm, body: LeaderBody<T>, events: Events): Promise<Ended<T>> {
  let outcome: { readonly value: T } | { readonly error: unknown };
  try {
    outcome = { value: await term.lead(body, events.holds) };
  } catch (error) {
    outcome = { error };
  }
  // The body counts as having led to its end if Redis says so, or does not answer: then an event
  // reports it, and the resignation is tried again until the term is over.
  await term.resign().catch((error: unknown) => {
    if (!isLockLost(error)) events.report(error);
  });
  if ("value" in outcome) return term.lost ? { is: "lost" } : outcome;
  if (!term.lost) return { is: "failed", ...outcome };
  return isLockLost(outcome.error) ? { is: "lost" } : { is: "broken", ...outcome };
}

inspectAs(NamedElection, "Election");

import {
  ClientClosedError,
  isLockLost,
  LockLostError,
  LockUnavailableError,
  NotReplicatedError,
  ResultError,
} from "../api/errors.ts";
import { encodeLabel } from "../api/label.ts";
import type { Inspected } from "../api/lock.ts";
import type { ForceUnlockOptions } from "../api/options.ts";
import type { Remembered, RememberedNow, ResultRun, RunWanted } from "../api/remember.ts";
import { nounOf } from "../api/wording.ts";
import { itself, SharedLease } from "../core/lease/shared-lease.ts";
import type { Terms, WantedResult } from "../core/lease/terms.ts";
import { checkForceUnlock } from "../locks/arguments.ts";
import { CallSite } from "../locks/call-site.ts";
import { keyOf } from "../locks/holding.ts";
import { waitBeside } from "../locks/scope-wait.ts";
import type { Scopes } from "../locks/scopes.ts";
import { timedOut } from "../locks/timed-out.ts";
import { runBody } from "../locks/with-lock.ts";
import { unavailable } from "../redis/replies.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import type { RememberKind } from "../wires/remember.ts";
import { RunHandle } from "./run.ts";
import { decode, encode } from "./stored.ts";

const UNSTORED =
  "its result, which is stored as soon as Redis answers within a minute, was not confirmed, and other callers may not get it";

type Body<T> = (run: ResultRun) => T | PromiseLike<T>;

/** All results that one client shares. */
export class Remembering {
  readonly #kind: RememberKind;
  readonly #manager: LockManager;
  readonly #scopes: Scopes;

  constructor(kind: RememberKind, manager: LockManager, scopes: Scopes) {
    this.#kind = kind;
    this.#manager = manager;
    this.#scopes = scopes;
  }

  /** `below`: the method that the application called. */
  async remember<T>(
    name: string,
    wanted: RunWanted,
    body: Body<T>,
    below: (...args: never[]) => unknown,
  ): Promise<Remembered<T>> {
    const [manager, scopes, kind] = [this.#manager, this.#scopes, this.#kind];
    const { wait, lease, signal, label, fingerprint } = wanted;
    const result: WantedResult = { seen: 0, found: (kept) => decode(name, kept, fingerprint) };
    const terms: Terms = {
      lease,
      watchdog: true,
      maxHold: Number.POSITIVE_INFINITY,
      linger: 0,
      result,
      ...(label !== undefined && { label: ` ${encodeLabel(label)}` }),
    };
    // A body that calls this with its own name waits for itself. No call enters a run.
    const callSite = scopes.current() && new CallSite(below);
    const request = { terms, wait, signal, explicit: null, reentrant: false, callSite };
    const got = await waitBeside<SharedLease | Remembered<T>>(manager, scopes, kind, name, request, itself);
    if (got instanceof SharedLease) return this.#run(got, wanted, body, callSite);
    return got ?? timedOut(manager, kind, name, wait);
  }

  async #run<T>(
    lease: SharedLease,
    { keep, fingerprint }: RunWanted,
    body: Body<T>,
    callSite: CallSite | null,
  ): Promise<Remembered<T>> {
    const [manager, kind] = [this.#manager, this.#kind];
    const { name, token, hold } = lease;
    const { events } = manager;
    const run = kind.runOf(hold);
    const go = async () => {
      const value = await body(new RunHandle(lease));
      const encoded = encode(value, fingerprint);
      kind.finishes(hold, encoded.result, keep);
      return { ...encoded, value };
    };
    const leave = async (): Promise<void> => {
      // Its hold is lost already, so no release stores the result.
      if (!lease.expire() && run.finish && !manager.isClosed)
        await kind.finish(hold).catch(() => manager.leave(kind, hold));
      await lease.leave().catch((error: unknown) => {
        if (isLockLost(error) || !run.finish) throw error;
        throw new LockUnavailableError(
          name,
          UNSTORED,
          error instanceof Error ? error.cause : error,
          lease.noun,
        );
      });
    };
    const inside = { scopes: this.#scopes, events, confirm: false, own: lease, loan: null };
    const how = { isOrdered: false, isReentrant: false, callSite };
    // A throw is not remembered: the next waiter runs.
    const { value, result, why, cause } = await runBody(
      inside,
      [[keyOf(kind.protocol, name), lease, how]],
      { leave },
      go,
      null,
    );
    // RACE: its deadline passed while the command was under way.
    if (run.isRefused) throw new LockLostError(name, "taken", undefined, undefined, null, lease.noun);
    const missing = run.kept && (await run.replicated);
    if (missing) events.report(unreplicated(lease, missing));
    if (why !== null) throw new ResultError(name, why, value, cause);
    return { ...decode<T>(name, run.kept ?? { ...result, token, at: 0, rest: 0 }, undefined), ran: true };
  }

  async remembered<T>(name: string): Promise<RememberedNow<T> | null> {
    const kept = await this.#ask(name, "its result could not be read", () => this.#kind.show(name));
    if (!kept) return null;
    const { value, token, at } = decode<T>(name, kept, undefined);
    return { value, token, at, remaining: kept.rest };
  }

  forget(name: string): Promise<boolean> {
    return this.#ask(name, "its result could not be removed", () => this.#kind.forget(name));
  }

  /** Was there such a run? */
  async stop(name: string, options: ForceUnlockOptions | undefined): Promise<boolean> {
    const { label, meant } = checkForceUnlock(name, options, this.#kind);
    const stop = () => this.#kind.forceRelease(name, label, meant);
    return (await this.#ask(name, "its run could not be stopped", stop)) > 0;
  }

  /** The run under way, and its waiters. */
  inspect(name: string): Promise<Inspected> {
    return this.#ask(name, "it could not be inspected", () => this.#kind.inspect(name));
  }

  /** One command beside all runs. @throws ClientClosedError; LockUnavailableError */
  async #ask<T>(name: string, failed: string, send: () => Promise<T>): Promise<T> {
    if (this.#manager.isClosed) throw new ClientClosedError(name);
    return send().catch((error: unknown) => {
      throw unavailable(name, failed, error, nounOf(this.#kind));
    });
  }
}

/** Its result is stored, and a failover could lose it. */
function unreplicated({ name, noun }: SharedLease, cause: unknown): Error {
  if (cause instanceof NotReplicatedError)
    return new NotReplicatedError(name, cause.wanted, cause.acknowledged, noun, "has stored its result");
  return new LockUnavailableError(
    name,
    "its result is stored, but replicas did not say that they have it",
    cause,
    noun,
  );
}

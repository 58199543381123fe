import { ClientClosedError, isLockLost, LockLostError, ResultError } from "../api/errors.ts";
import { encodeLabel } from "../api/label.ts";
import type { Inspected } from "../api/lock.ts";
import type { ForceUnlockOptions } from "../api/options.ts";
import type { Remembered, RememberedNow, ResultRun, RunWanted } from "../api/remember.ts";
import { nounOf } from "../api/wording.ts";
import { itself, SharedLease } from "../core/lease/shared-lease.ts";
import type { Terms, WantedResult } from "../core/lease/terms.ts";
import { checkForceUnlock } from "../locks/arguments.ts";
import { timedOut } from "../locks/timed-out.ts";
import { type Kept, unavailable } from "../redis/replies.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { clocks } from "../util/clock.ts";
import type { Finishing, RememberKind } from "../wires/remember.ts";
import { RunHandle } from "./run.ts";
import { decode, encode } from "./stored.ts";

type Body<T> = (run: ResultRun) => T | PromiseLike<T>;

/** All results that one client shares. */
export class Remembering {
  readonly #kind: RememberKind;
  readonly #manager: LockManager;

  constructor(kind: RememberKind, manager: LockManager) {
    this.#kind = kind;
    this.#manager = manager;
  }

  async remember<T>(name: string, wanted: RunWanted, body: Body<T>): Promise<Remembered<T>> {
    const manager = this.#manager;
    const { wait, lease, signal, label, fingerprint } = wanted;
    const result: WantedResult = { seen: 0, found: (kept) => kept };
    const terms: Terms = {
      lease,
      watchdog: true,
      maxHold: Number.POSITIVE_INFINITY,
      linger: 0,
      result,
      ...(label !== undefined && { label: ` ${encodeLabel(label)}` }),
    };
    const got: SharedLease | Kept | null = await manager.enter(
      this.#kind,
      name,
      { terms, wait, signal },
      itself,
    );
    if (!got) return timedOut(manager, this.#kind, name, wait);
    if (got instanceof SharedLease) return this.#run(got, wanted, body);
    return decode(name, got, fingerprint);
  }

  async #run<T>(lease: SharedLease, wanted: RunWanted, body: Body<T>): Promise<Remembered<T>> {
    const { name, token, hold } = lease;
    const { events } = this.#manager;
    const proof = this.#kind.proofOf(hold);
    let value: T;
    try {
      const go = () => body(new RunHandle(lease));
      value = await (events.holds ? events.holds.within(lease, go) : go());
    } catch (error) {
      // A throw is not remembered: the next waiter runs.
      await lease.leave().catch((failure: unknown) => {
        if (!isLockLost(failure)) events.report(failure);
      });
      const { loss } = lease;
      throw loss && error !== loss ? loss.causedBy(error) : error;
    }
    const { result, why, cause } = encode(value, wanted.keep, wanted.fingerprint);
    // They have waited for this run.
    for (const { terms } of this.#manager.waitersOf(this.#kind, name))
      if (terms.result?.seen === 0) terms.result.seen = token;
    const finishing = this.#kind.finishes(hold, proof, result);
    if (lease.expire()) {
      await lease.leave().catch((failure: unknown) => {
        if (!isLockLost(failure)) events.report(failure);
      });
      if (finishing.at === 0 && !finishing.isRefused) this.#late(finishing);
    } else if (!this.#manager.isClosed && clocks.mono.now() < finishing.until)
      await this.#kind.finish(finishing).catch(() => this.#late(finishing));
    if (lease.loss) throw lease.loss;
    // RACE: its deadline passed while the command was under way.
    if (finishing.isRefused) throw new LockLostError(name, "taken", undefined, undefined, null, lease.noun);
    if (why !== null) throw new ResultError(name, why, value, cause);
    const at = Math.floor(finishing.at / 1_000);
    return { value: result.state === "u" ? (undefined as T) : JSON.parse(result.json), ran: true, token, at };
  }

  /** Its result is stored as soon as Redis answers, as long as it counts. */
  #late(finishing: Finishing): void {
    const left = finishing.until - clocks.mono.now();
    const withdraw = async (): Promise<void> => {
      if (clocks.mono.now() < finishing.until) await this.#kind.finish(finishing);
    };
    if (left > 0) this.#manager.cleanup.add({ withdraw }, finishing.hold, left);
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

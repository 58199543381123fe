import { acquiring, holding } from "../api/channels.ts";
import { ClientClosedError } from "../api/errors.ts";
import type { Caller } from "../api/events.ts";
import type { Interval, OnceResult, Turn } from "../api/once.ts";
import type { StoredSettings } from "../api/stored-settings.ts";
import { Hold } from "../core/lease/hold.ts";
import { HoldIds } from "../redis/hold-ids.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { Following } from "../runtime/telemetry/following.ts";
import { listen, unlisten } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { Beginning, type Begun } from "./beginning.ts";
import type { OnceScripts } from "./once-scripts.ts";
import { Run } from "./run.ts";

type Body<T> = (turn: Turn) => T | PromiseLike<T>;

/** All functions that one client runs at most once per interval. */
export class Once {
  readonly #scripts: OnceScripts;
  readonly #client: LockManager;
  readonly #stored: StoredSettings;
  readonly #beginnings = new Set<Beginning>();
  readonly #runs = new Set<Run>();
  /** Made by the first call. Turns have no messages, so ids need not be recognised later. */
  #ids: HoldIds | null = null;
  #whenEmpty: (() => void) | null = null;

  constructor(scripts: OnceScripts, client: LockManager, stored: StoredSettings) {
    this.#scripts = scripts;
    this.#client = client;
    this.#stored = stored;
  }

  run<T>(name: string, interval: Interval, body: Body<T>): Promise<OnceResult<T>> {
    const { clientId, events } = this.#client;
    const { signal } = interval;
    const caller = this.#client.newCaller("once");
    const since = clocks.mono.now();
    this.#ids ??= new HoldIds(0);
    const hold = new Hold(this.#ids.next(clientId), name);
    const followed =
      acquiring.hasSubscribers || holding.hasSubscribers
        ? new Following(events, caller, { name, wait: 0, lease: interval.lease })
        : null;
    followed?.begin(() => {});
    return new Promise((resolve, reject) => {
      const beginning = new Beginning(this.#scripts, this.#client, hold, interval, {
        answered: (begun) => {
          if (signal) unlisten(signal, beginning);
          if (begun.is === "ours") resolve(this.#go(caller, hold, interval, body, since, followed));
          else {
            events.tellGiveUp(name, caller, since, 0, null);
            followed?.gaveUp(null);
            resolve(notRun(begun));
            if (begun.is === "running") this.#stored.ofRun(name, begun.remaining, interval);
          }
        },
        failed: (error) => {
          if (signal) unlisten(signal, beginning);
          events.tellGiveUp(name, caller, since, 0, error);
          followed?.gaveUp(error);
          reject(error);
          this.#look();
        },
      });
      if (signal?.aborted) beginning.aborted(signal.reason);
      else if (signal) listen(signal, beginning);
      this.#beginnings.add(beginning);
      void beginning.begin().finally(() => {
        this.#beginnings.delete(beginning);
        this.#look();
      });
    });
  }

  async #go<T>(
    caller: Caller,
    hold: Hold,
    interval: Interval,
    body: Body<T>,
    since: number,
    followed: Following | null,
  ): Promise<OnceResult<T>> {
    const run: Run = new Run(this.#scripts, this.#client, hold, interval, caller, () => {
      this.#runs.delete(run);
      this.#look();
    });
    this.#runs.add(run);
    followed?.got([run.lease]);
    return { ran: true, value: await run.go(body, clocks.mono.now() - since) };
  }

  /**
   * Refuses calls that are still asking. Resolves when no turn is left, and Redis has answered all
   * queries that it may have received.
   */
  close(): Promise<void> {
    for (const beginning of this.#beginnings) beginning.aborted(new ClientClosedError(beginning.name));
    return new Promise((resolve) => {
      this.#whenEmpty = resolve;
      this.#look();
    });
  }

  #look(): void {
    if (!this.#whenEmpty || this.#runs.size > 0) return;
    for (const { isUnderWay } of this.#beginnings) if (isUnderWay) return;
    this.#whenEmpty();
  }
}

const notRun = (begun: Exclude<Begun, { readonly is: "ours" }>): OnceResult<never> => {
  return { ran: false, running: begun.is === "running", remaining: begun.remaining };
};

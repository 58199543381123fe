import { EventEmitter } from "eventemitter3";
import { WARN_AGAIN } from "../defaults.ts";
import { clocks } from "../util/clock.ts";
import { detached } from "../util/detached.ts";
import { warn } from "../util/warn.ts";
import { POINTS } from "./channels.ts";
import {
  type DeadlockLink,
  LockError,
  type LockLostError,
  LockUnavailableError,
  listenerFailed,
} from "./errors.ts";
import { type GiveUpReason, reasonOf } from "./give-up.ts";
import { refuse } from "./validate.ts";

/**
 * The method that a caller used: `lock`, `fairLock`, `redissonLock` …; `lock` of a client of
 * several masters; `multiLock`; the two locks of `readWriteLock`; `semaphore`, `election`, `once`,
 * `remember`.
 */
export type EventKind =
  | "lock"
  | "fair"
  | "redisson"
  | "redissonFenced"
  | "spin"
  | "quorum"
  | "multi"
  | "read"
  | "write"
  | "semaphore"
  | "election"
  | "once"
  | "remember";

/** The caller of an event. */
export interface Caller {
  /** The client's number for each call that comes to a lock from outside of its scope. */
  readonly call: number;
  readonly kind: EventKind;
  /** Of a semaphore: how many permits it wants or has. Left out: it is a lock. */
  readonly units?: number | undefined;
}

/**
 * What every event of a lock carries. Each lock of a multi-lock has its own events, with one
 * `call`.
 *
 * A call with valid arguments ends its wait with one `acquire` or one `giveup`; before that comes a
 * `wait` if it had to wait. A call that got the lock ends with `release` when it gives the lock
 * back, or with `lost`. A caller that re-enters or borrows a lock in its scope is part of the call
 * that acquired the lock, and has no events.
 */
export interface LockEvent extends Caller {
  /** The lock's name. */
  readonly name: string;
}

/** What every event about a call carries. */
export function ofCall({ name, call, kind, units }: LockEvent): LockEvent {
  return units === undefined ? { name, kind, call } : { name, kind, call, units };
}

/**
 * The token that a holder may send with its writes. Null: permits fence nothing, and some kinds of
 * locks have no tokens.
 */
export const fenceOf = ({
  token,
  units,
}: Pick<Caller, "units"> & { readonly token: number }): number | null =>
  token === 0 || units !== undefined ? null : token;

/** The same, and the token. */
export function ofHolder(holder: LockEvent & { readonly token: number }) {
  const { name, call, kind, units } = holder;
  const token = fenceOf(holder);
  return units === undefined ? { name, kind, call, token } : { name, kind, call, token, units };
}

/**
 * The fields of `lost`. `firstToken`: the first token for which Redis had not confirmed that the
 * lock was held; undefined: the holder's own.
 */
export function ofLoss(
  holder: LockEvent & { readonly token: number; readonly firstToken?: number | undefined },
  heldFor: number,
  error: LockLostError,
) {
  const told = ofHolder(holder);
  return { ...told, firstToken: told.token && (holder.firstToken ?? told.token), heldFor, error };
}

/**
 * A client's events. Times are in ms; `token` is null for permits and for kinds of locks that have
 * no tokens.
 */
export interface LockEvents {
  /**
   * A caller got the lock after `waitedFor` ms. `passed`: another caller of this process had it
   * before, and no other process in between. `kept`: this process had cached it since its last
   * unlock, so no round trip was needed.
   */
  acquire: (
    event: LockEvent & {
      readonly token: number | null;
      readonly waitedFor: number;
      readonly passed: boolean;
      readonly kept: boolean;
    },
  ) => void;
  /**
   * A caller has to wait: once for each call; for a multi-lock, once for each lock in its way.
   * Emitted again, with `heldBy` "this client" or "this process", when one hold of this client, or
   * of another client of this process, has made it wait for two of its leases: usually a deadlock
   * with itself. (`LockTimeoutError.heldBy` "this process" means this client.) Also with `heldBy`
   * "this scope", after its own scope has held the lock for 5 s and one of the two does not let it
   * enter (`reentrant: false`).
   */
  wait: (
    event: LockEvent & {
      readonly heldBy: "this scope" | "this client" | "this process" | "unknown";
      readonly waitedFor: number;
    },
  ) => void;
  /**
   * A caller has waited for `waitedFor` ms in a deadlock: a circle of callers, each of which waits
   * for a lock that the next one's scope holds. `cycle` leads from the lock that this caller waits
   * for to the one that its own scope holds. `rejected`: it no longer waits. Emitted once for each
   * such caller.
   */
  deadlock: (
    event: Pick<LockEvent, "name" | "kind"> & {
      readonly waitedFor: number;
      readonly cycle: readonly DeadlockLink[];
      readonly rejected: boolean;
    },
  ) => void;
  /**
   * A call ended without the lock, after `waitedFor` ms; for a multi-lock once, with the name of
   * the lock that was the cause.
   */
  giveup: (event: LockEvent & { readonly waitedFor: number; readonly why: GiveUpReason }) => void;
  /** A caller gave the lock back after `heldFor` ms. */
  release: (event: LockEvent & { readonly token: number | null; readonly heldFor: number }) => void;
  /**
   * Another process wants a lock that this process caches (`linger`) with no caller inside, and
   * gets it. It was idle for `idle` ms since its last unlock, and had been taken again `uses`
   * times.
   */
  recall: (
    event: Pick<LockEvent, "name" | "kind"> & { readonly idle: number; readonly uses: number },
  ) => void;
  /** The watchdog raised a lease; `remaining` ms are left. */
  renew: (event: LockEvent & { readonly token: number | null; readonly remaining: number }) => void;
  /**
   * A lease was lost after `heldFor` ms; its signal aborts in the same statement. If only the
   * release found out, it comes after the `release` of the same call. `firstToken`: of the first
   * caller that may have been without the lock, because Redis had not confirmed it since; usually
   * the same as `token`, which is the last caller's. `heldFor` is 0 if no caller was inside any
   * more. `remains`: only one of the leases of this call was lost, by the end of a `locks.scope()`,
   * and others still hold the lock; the call's own `release` or `lost` comes later.
   */
  lost: (
    event: LockEvent & {
      readonly token: number | null;
      readonly firstToken: number | null;
      readonly heldFor: number;
      readonly error: LockLostError;
      readonly remains?: boolean;
    },
  ) => void;
  /**
   * For a lock on several masters: a lease has been on `has` of `of` nodes for a second, which is
   * no more than a majority. If one more node fails, the lease may be lost. Emitted again, with a
   * larger `has`, when more nodes have it; its `release` or `lost` ends it too.
   */
  exposed: (event: LockEvent & { readonly has: number; readonly of: number }) => void;
  /**
   * A failure that no caller receives. Without a listener it becomes a process warning, once per
   * code and minute. What a listener or a body threw is the `cause` of a LISTENER_FAILED or
   * BODY_FAILED.
   */
  error: (error: LockError) => void;
}

const EVENTS: Readonly<Record<keyof LockEvents, true>> = {
  acquire: true,
  wait: true,
  deadlock: true,
  giveup: true,
  release: true,
  recall: true,
  renew: true,
  lost: true,
  exposed: true,
  error: true,
};

/** @throws TypeError for an unknown event: its listener would never run, without any notice. */
export function checkEvent(event: unknown): void {
  if (typeof event === "string" && Object.hasOwn(EVENTS, event)) return;
  const known = Object.keys(EVENTS).join(", ");
  throw refuse(TypeError, "Cannot add a listener", "event", `one of ${known}`, event);
}

/** The holds of a client that an observer follows: src/runtime/telemetry. */
export interface FollowedHolds {
  /** Runs the body of the call that has this hold in the observer's context. */
  within<T>(hold: Pick<LockEvent, "call" | "name">, body: () => T): T;
  /** `error`: it was lost. */
  ended(told: LockEvent & { readonly heldFor: number }, error: LockLostError | null): void;
}

type Event = Parameters<EventEmitter["on"]>[0];
type Listener = Parameters<EventEmitter["on"]>[1];

/**
 * The client's events. Emitting costs nothing without listeners, and a listener that throws or
 * rejects stops nothing.
 */
export class Events extends EventEmitter {
  /** The client's id. */
  readonly client: string;
  /** Null: no observer has followed any. */
  holds: FollowedHolds | null = null;
  /** Was a listener ever added? Check it first on paths that every caller takes. */
  isUsed = false;
  readonly #warned = new Map<string, number>();
  #isInStep = false;
  #isTelling = false;
  /** Signals to abort, and then events to tell, after the step that is under way. */
  readonly #aborts: (() => void)[] = [];
  readonly #untold: (() => void)[] = [];
  /** By event and listener, the function that is called in its place. */
  readonly #heeded = new Map<Event, WeakMap<Listener, Listener>>();

  constructor(client: string) {
    super();
    this.client = client;
  }

  override on(event: Event, listener: Listener): this {
    this.isUsed = true;
    return super.on(event, this.#heed(event, listener));
  }

  override once(event: Event, listener: Listener): this {
    this.isUsed = true;
    return super.once(event, this.#heed(event, listener));
  }

  override off(event: Event, listener: Listener): this {
    return super.off(event, this.#heeded.get(event)?.get(listener) ?? listener);
  }

  /**
   * Runs a listener outside of every caller's context, each in one of its own, and keeps one that
   * throws from stopping the others. RACE: an async one rejects later; unhandled, that would end
   * the process.
   */
  #heed(event: Event, listener: Listener): Listener {
    const all = this.#heeded.get(event) ?? new WeakMap<Listener, Listener>();
    this.#heeded.set(event, all);
    const known = all.get(listener);
    if (known) return known;
    const heed = (told: unknown): void => {
      const failed = (thrown: unknown): void => {
        const failure = listenerFailed(String(event), lockOf(told), thrown);
        // The failure of an `error` listener is not reported to it: that would never end.
        if (event === "error") this.#warn(failure);
        else this.report(failure);
      };
      try {
        // Its promise too: `then` is the application's own, if it is no real promise.
        detached(() => {
          const returned: unknown = listener(told);
          if (isThenable(returned)) Promise.resolve(returned).catch(failed);
        });
      } catch (error) {
        failed(error);
      }
    };
    all.set(listener, heed);
    return heed;
  }

  /** Is there a listener? Check it before building an event. */
  hears(event: keyof LockEvents): boolean {
    if (this.listenerCount(event) > 0 || pointOf(event)?.hasSubscribers) return true;
    return this.holds !== null && (event === "release" || event === "lost");
  }

  /**
   * Runs a step that changes locks, and calls listeners only after it. RACE: a listener may unlock,
   * take or abort something in the statement in which it is called. In the middle of a step it would
   * find a state that is neither the one before nor the one that its event reports, and the step
   * would continue with what the listener has changed.
   */
  step<T>(work: () => T): T {
    const isOuter = this.begin();
    try {
      return work();
    } finally {
      this.end(isOuter);
    }
  }

  /** Begins a step without a function of its own. `end` must follow, with what this returns. */
  begin(): boolean {
    const isOuter = !this.#isInStep;
    this.#isInStep = true;
    return isOuter;
  }

  end(isOuter: boolean): void {
    if (!isOuter) return;
    this.#isInStep = false;
    // RACE: first, because a listener of `lost` may check the signal.
    while (this.#aborts.length > 0) this.#aborts.shift()?.();
    if (this.#untold.length > 0) this.#tellAll();
  }

  /** Aborts a signal. Its listeners run after the step that is under way. */
  abort(controller: AbortController, reason: unknown): void {
    this.step(() => this.#aborts.push(() => detached(() => controller.abort(reason))));
  }

  /** Calls listeners after the step that is under way. */
  #afterStep(call: () => void): void {
    this.#untold.push(call);
    if (!this.#isInStep) this.#tellAll();
  }

  /**
   * RACE: a listener may cause further events in the statement in which it is called, such as the
   * `giveup` of a caller whose `wait` is the next to be told. They come after those that happened
   * before.
   */
  #tellAll(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      for (let tell = this.#untold.shift(); tell; tell = this.#untold.shift()) tell();
    } finally {
      this.#isTelling = false;
    }
  }

  tell<K extends Exclude<keyof LockEvents, "error">>(event: K, told: Parameters<LockEvents[K]>[0]): void {
    this.#afterStep(() => this.#tell(event, told));
  }

  #tell<K extends Exclude<keyof LockEvents, "error">>(event: K, told: Parameters<LockEvents[K]>[0]): void {
    this.emit(event, told);
    const point = pointOf(event);
    if (point?.hasSubscribers) detached(() => point.publish({ client: this.client, ...told }));
    if (this.holds && "heldFor" in told && !("remains" in told))
      this.holds.ended(told, "error" in told ? told.error : null);
  }

  /** Reports failures that no caller sees; of several locks, each on its own. */
  report(error: unknown): void {
    for (const one of error instanceof AggregateError ? error.errors : [error]) {
      const known = one instanceof LockError ? one : new LockUnavailableError(null, UNSEEN, one);
      this.#afterStep(() => {
        if (!this.emit("error", known)) this.#warn(known);
        const { error: point } = POINTS;
        if (point.hasSubscribers) detached(() => point.publish({ client: this.client, error: known }));
      });
    }
  }

  /** A call ended without the lock. `error`: what it rejects with; null: another caller held it. */
  tellGiveUp(name: string, { call, kind, units }: Caller, since: number, wait: number, error: unknown): void {
    if (!this.hears("giveup")) return;
    const why = error === null ? (wait > 0 ? "timeout" : "busy") : reasonOf(error);
    this.tell("giveup", {
      ...ofCall({ name, kind, call, units }),
      waitedFor: clocks.mono.now() - since,
      why,
    });
  }

  #warn({ code, message, stack = "", cause }: LockError): void {
    const now = clocks.mono.now();
    const last = this.#warned.get(code);
    if (last !== undefined && now - last < WARN_AGAIN) return;
    this.#warned.set(code, now);
    const detail = cause instanceof Error ? `${stack}\nCaused by: ${cause.stack}` : stack;
    warn(message, code, detail);
  }
}

const UNSEEN = "a background operation failed";

/** The lock that an event or an error is about. */
const lockOf = (told: unknown): string | null =>
  told instanceof LockError ? told.lockName : (told as LockEvent).name;

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === "object" && value !== null && "then" in value;

const pointOf = (event: keyof LockEvents) => (event in POINTS ? POINTS[event as keyof typeof POINTS] : null);

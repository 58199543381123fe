import { LockError, LockLostError } from "../api/errors.ts";
import { ofLoss } from "../api/events.ts";
import { endOf } from "../api/wording.ts";
import { unwatchHandle, watchHandle } from "../core/lease/collected-handles.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import { onAbort } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { detached } from "../util/detached.ts";
import { duration } from "../util/duration.ts";
import { quote } from "../util/quote.ts";
import { Timer } from "../util/timers.ts";

/** A lease as its scope sees it. */
export interface ScopedLease {
  readonly name: string;
  readonly noun: string;
  readonly held: boolean;
  /**
   * The body in which it was taken has ended. The lease stays; `taker`: the scope around that body
   * that takes it when that scope ends.
   */
  outlive(taker: LeaseKeeper | null): void;
  /**
   * The scope has ended, and takes it. Resolves when Redis has confirmed that, if a command is
   * needed.
   */
  take(): Promise<void>;
}

/** Knows the leases that were taken in it, until they are unlocked. A scope is one. */
export interface LeaseKeeper {
  /** The scope that takes them, at its end, if they are still held. Null: none does. */
  readonly taker: LeaseKeeper | null;
  keep(lease: ScopedLease): void;
  drop(lease: ScopedLease): void;
}

/**
 * Ties one user's lease to the scope in which it was taken. The end of a `locks.scope()` takes this
 * one lease away, and leaves the lock to other users of the same hold, so the lease has its own
 * signal. The end of a body takes nothing, but a lease that is still held one lease time later is
 * reported.
 */
export class ScopeTie extends Timer {
  /** The loss by which the scope's end ended this lease. Null: it has not. */
  taken: LockLostError | null = null;
  readonly #shared: SharedLease;
  #keeper: LeaseKeeper | null;
  #controller: AbortController | null = null;
  #unlisten: (() => void) | null = null;
  /**
   * The handle, after the end of its body. Weak: a handle that its caller has dropped must be
   * collected, and is then reported.
   */
  #late: WeakRef<ScopedLease> | null = null;
  #bodyEnd = 0;

  constructor(shared: SharedLease, keeper: LeaseKeeper) {
    super();
    this.#shared = shared;
    this.#keeper = keeper;
  }

  get signal(): AbortSignal {
    const { signal } = this.#shared;
    // A lease that no scope can take lasts as long as its hold.
    if (!this.#controller && !this.taken && !this.#keeper?.taker) return signal;
    if (!this.#controller) {
      const controller = new AbortController();
      this.#controller = controller;
      const reason = this.taken ?? (signal.aborted ? signal.reason : null);
      if (reason) controller.abort(reason);
      else this.#unlisten = onAbort(signal, () => controller.abort(signal.reason));
    }
    return this.#controller.signal;
  }

  /**
   * The lease was unlocked. `left`: resolves when that is done; until then its loss may be found.
   */
  cut(lease: ScopedLease, left: Promise<void>): Promise<void> {
    this.#untie(lease);
    // A hold that others still use must not keep the signals of those that have left.
    return this.#unlisten ? left.finally(this.#unlisten) : left;
  }

  /** The end of the scope ends the lease. `leave`: gives its share in the hold back. */
  take(lease: ScopedLease, leave: (isTaken: boolean) => Promise<void>): Promise<void> {
    const shared = this.#shared;
    const { name, noun, owner } = shared;
    this.#untie(lease);
    const isHeld = shared.expire();
    const loss = isHeld ? new LockLostError(name, "scope", undefined, undefined, null, noun) : shared.loss;
    this.taken = loss;
    this.#unlisten?.();
    // RACE: its caller is notified before the next one gets the lock, here or elsewhere.
    if (isHeld) detached(() => this.#controller?.abort(loss));
    const left = leave(isHeld);
    const { events } = owner.context;
    if (isHeld && loss && events.hears("lost")) {
      const held = clocks.mono.now() - shared.since;
      const told = ofLoss(shared, held, loss);
      // A reader inside a writer's lease is part of the writer's call.
      const isOver = shared.ended && !(owner.writer && !owner.writer.ended);
      events.tell("lost", isOver ? told : { ...told, remains: true });
    }
    return left;
  }

  /**
   * The body in which the lease was taken has ended. `isWatched`: the watchdog will watch whether
   * the handle is collected.
   */
  outlive(lease: ScopedLease, taker: LeaseKeeper | null, isWatched: boolean): void {
    const { owner, terms } = this.#shared;
    const { events, watchdog } = owner.context;
    this.#keeper = taker;
    taker?.keep(lease);
    this.#late = new WeakRef(lease);
    this.#bodyEnd = clocks.mono.now();
    watchdog.timers.set(this, this.#bodyEnd + terms.lease);
    if (!terms.watchdog || isWatched) return;
    // Register only once: the watchdog may have done it before.
    unwatchHandle(lease);
    watchHandle(lease, this.#shared, events);
  }

  /** One lease time has passed since the end of the body. */
  ring(): void {
    const lease = this.#late?.deref();
    if (!lease?.held) return;
    const late = Math.round(clocks.mono.now() - this.#bodyEnd);
    const end = `${endOf(lease.noun)}()`;
    const until = this.#keeper ? `${end} or the end of the scope around that body` : end;
    const text =
      `${lease.noun} ${quote(lease.name)} is still held, and stays so until ${until}: it was taken in a body that ended ${duration(late)} ago; ` +
      `call ${end} in the body, or use \`await using\`.`;
    this.#shared.owner.context.events.report(new LockError("LOCK_LEFT_BEHIND", lease.name, text));
  }

  #untie(lease: ScopedLease): void {
    this.#keeper?.drop(lease);
    this.#keeper = null;
    this.#shared.owner.context.watchdog.timers.clear(this);
  }
}

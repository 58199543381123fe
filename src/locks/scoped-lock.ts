import { LockLostError, LockTimeoutError, LockUnavailableError, quote } from "../errors.ts";
import { type Lease, LeaseHandle } from "../lease/lease.ts";
import type { Tenure } from "../lease/tenure.ts";
import { checkLockOptions, type Request } from "../options.ts";
import { Scope, type Scopes } from "../scope/scope.ts";
import type { Inspection } from "../scripts/answers.ts";
import type { LockKind } from "../waiting/kind.ts";
import type { Room } from "../waiting/room.ts";
import type { Lock, LockBody } from "./lock.ts";

/** Every lock kind as the caller sees it: arguments, scopes and handles around the waiting room. */
export class ScopedLock implements Lock {
  readonly name: string;
  readonly #kind: LockKind;
  readonly #room: Room;
  readonly #scopes: Scopes;
  readonly #leaseTime: number;

  constructor(name: string, kind: LockKind, room: Room, scopes: Scopes, leaseTime: number) {
    this.name = name;
    this.#kind = kind;
    this.#room = room;
    this.#scopes = scopes;
    this.#leaseTime = leaseTime;
  }

  // No async function where a plain one will do: each costs every waiter some hundred bytes, and a few turns of the
  // microtask queue between the grant and the caller.
  tryLock(...args: unknown[]): Promise<Lease | null> {
    try {
      return this.#acquire(this.#checkTry(args));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async lock(...args: unknown[]): Promise<Lease> {
    if (args.length > 1) throw new TypeError(`${this.#cannot()}: lock takes one argument, the options`);
    const request = this.#check(args[0], Number.POSITIVE_INFINITY);
    return (await this.#acquire(request)) ?? this.#timedOut(request);
  }

  async withLock<T>(...args: unknown[]): Promise<T> {
    const [body, options] = typeof args[0] === "function" ? args : [args[1], args[0]];
    if (typeof body !== "function" || args.length > 2) {
      throw new TypeError(`${this.#cannot()}: withLock takes a function, and options before or after it`);
    }
    const request = this.#check(options, Number.POSITIVE_INFINITY);
    const holding = this.#scopes.find(this.#key);
    if (!holding) {
      const tenure = await this.#room.enter(this.#kind, this.name, request, itself);
      return this.#run(tenure ?? this.#timedOut(request), body as LockBody<T>, () => tenure?.leave());
    }
    const { tenure, gate } = holding;
    this.#assertKept(tenure);
    // The lock stays until every borrower has ended, also those that still wait for their turn.
    tenure.share();
    try {
      if (!(await gate.enter(request.wait, request.signal))) this.#timedOut(request);
    } catch (error) {
      await tenure.leave().catch(() => {});
      throw error;
    }
    try {
      // It may have been lost while another borrower was inside.
      return await this.#run(tenure, body as LockBody<T>, () => tenure.leave(), request);
    } finally {
      gate.leave();
    }
  }

  isHeldHere(): boolean {
    return this.#scopes.find(this.#key)?.tenure.held ?? false;
  }

  async isLocked(): Promise<boolean> {
    return (await this.inspect()).holder !== null;
  }

  inspect(): Promise<Inspection> {
    return this.#ask(() => this.#kind.inspect(this.name), "it could not be inspected");
  }

  forceUnlock(): Promise<boolean> {
    return this.#ask(() => this.#kind.forceRelease(this.name), "it could not be released by force");
  }

  /** Redisson's idiom would release whatever this process holds by then. JavaScript callers are told what to do. */
  unlock(): never {
    throw new TypeError(
      `Cannot unlock ${quote(this.name)}: a lock has no unlock(); keep the lease that tryLock() or lock() gave, and call lease.unlock()`,
    );
  }

  // ---- acquiring

  /** A lease on a lock that this scope holds already, or on a new tenure. */
  #acquire(request: Request): Promise<Lease | null> {
    const scope = this.#scopes.current();
    const holding = scope && this.#scopes.find(this.#key);
    if (holding) return this.#reenter(holding.tenure, scope, request);
    return this.#room.enter(this.#kind, this.name, request, (tenure) => {
      // The scope may have ended while this waited: then it is nobody's but the caller's.
      const keeper = scope && !scope.hasEnded ? scope : null;
      keeper?.hold(this.#key, tenure);
      return this.#handle(tenure, keeper);
    });
  }

  async #reenter(tenure: Tenure, scope: Scope, request: Request): Promise<Lease> {
    this.#assertKept(tenure);
    await tenure.enter();
    const lease = this.#handle(tenure, scope.hasEnded ? null : scope);
    await this.#lengthen(tenure, request).catch(async (error: unknown) => {
      await lease.unlock().catch(() => {});
      throw error;
    });
    return lease;
  }

  /** A longer lease extends what the scope holds; a shorter one never shortens it, and none leaves it as it is. */
  async #lengthen(tenure: Tenure, request: Request): Promise<void> {
    if (request.explicit !== null && request.explicit > tenure.left()) await tenure.extend(request.explicit);
    this.#assertKept(tenure);
  }

  /** Runs a body in a scope of its own that holds the lock, and leaves. */
  async #run<T>(
    tenure: Tenure,
    body: LockBody<T>,
    leave: () => Promise<void> | undefined,
    again: Request | null = null,
  ): Promise<T> {
    const scope = new Scope(this.#scopes.current());
    scope.hold(this.#key, tenure);
    const lease = new LeaseHandle(tenure, this.#room.events, async () => leave());
    let outcome: { readonly value: T } | { readonly error: unknown };
    try {
      if (again) await this.#lengthen(tenure, again);
      outcome = { value: await this.#scopes.run(scope, () => body(lease)) };
    } catch (error) {
      outcome = { error };
    }
    await scope.end((error) => this.#room.events.report(error));
    // What Redis did not confirm is tried again until the lease ends; the body ran under the lock, and that is the answer.
    const loss = await lease
      .unlock()
      .catch((error: unknown) => (error instanceof LockLostError ? error : this.#room.events.report(error)));
    const lost = loss ?? tenure.loss;
    if (lost && "error" in outcome)
      throw outcome.error === lost ? lost : new LockLostError(this.name, lost.reason, outcome.error);
    if (lost) throw lost;
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  /** For who has entered it; the scope unlocks it at its end, if nobody has by then. */
  #handle(tenure: Tenure, scope: Scope | null): Lease {
    if (!scope) return new LeaseHandle(tenure, this.#room.events, null);
    const lease: Lease = new LeaseHandle(tenure, this.#room.events, () => {
      forget();
      return tenure.exit();
    });
    const forget = scope.keep(lease);
    return lease;
  }

  // ---- small parts

  #cannot(): string {
    return `Cannot lock ${quote(this.name)}`;
  }

  /** By what scopes know the lock: `lock` and `fairLock` of one name are one lock. */
  get #key(): string {
    return `${this.#kind.protocol} ${this.name}`;
  }

  #check(options: unknown, wait: number): Request {
    const { longestLease: longest } = this.#kind;
    return checkLockOptions(() => this.#cannot(), options, { wait, leaseTime: this.#leaseTime, longest });
  }

  #checkTry(args: readonly unknown[]): Request {
    const [first, lease] = args;
    if (args.length > 2)
      throw new TypeError(
        `${this.#cannot()}: tryLock takes (wait, lease) in milliseconds; there is no time unit`,
      );
    if (typeof first !== "object" || first === null) return this.#check({ wait: first, lease }, 0);
    if (args.length > 1) throw new TypeError(`${this.#cannot()}: tryLock takes (wait, lease) or (options)`);
    return this.#check(first, 0);
  }

  #timedOut(request: Request): never {
    throw new LockTimeoutError(this.name, request.wait);
  }

  /** Nothing new may begin under a lock that its scope has lost. */
  #assertKept(tenure: Tenure): void {
    tenure.expire();
    if (tenure.loss) throw tenure.loss;
  }

  async #ask<T>(command: () => Promise<T>, failure: string): Promise<T> {
    try {
      return await command();
    } catch (error) {
      throw new LockUnavailableError(this.name, failure, error);
    }
  }
}

const itself = (tenure: Tenure): Tenure => tenure;

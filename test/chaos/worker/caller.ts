import { setTimeout as delay } from "node:timers/promises";
import type { LockClient, LockOptions } from "../../../src/index.ts";
import type { Dice } from "../dice.ts";
import { micros, type Told } from "../history/events.ts";
import type { Recorder } from "../history/recorder.ts";
import { type AnyLease, type AnyLock, anyLock, runAsLeader } from "./any-lock.ts";
import { explain } from "./explain.ts";
import type { Taste } from "./orders.ts";
import type { Rest } from "./rest.ts";
import { describeWish, type Wish, wish } from "./wish.ts";

/** ms between two looks at a lease while it is held. */
const LOOK_EVERY = 40;

/** What the callers of a worker share. */
export interface Desk {
  /** Of a quorum it has `lock` only. */
  readonly locks: LockClient;
  readonly isQuorum: boolean;
  readonly names: readonly string[];
  readonly owns: readonly string[];
  readonly taste: Taste;
  readonly dice: Dice;
  readonly recorder: Recorder;
  /** Calls and their leases as the events of the client tell of them: readers have the same token. */
  readonly holding: Map<string, Map<number, AnyLease>>;
  /** Names of runs whose end Redis did not confirm. */
  readonly unended: Set<string>;
  readonly rest: Rest;
  calls: number;
  grants: number;
  isOpen: boolean;
}

/** Asks for locks, holds them, gives them back, and tells all of it, until the desk is closed. */
export async function caller(desk: Desk): Promise<void> {
  while (desk.isOpen) {
    await delay(desk.dice.int(0, desk.dice.chance(0.2) ? 150 : 12));
    await desk.rest.between();
    if (desk.isOpen) await new Round(desk, wish(desk)).run();
  }
}

/**
 * ms that a run, or a term, may take besides what its caller would wait: Redis is asked again until
 * it has answered.
 */
const REPLY_TIMEOUT = 5_000;

/** Of one lock, or of several that are taken together: each of those is told as a call of its own. */
class Round {
  readonly #desk: Desk;
  readonly #wish: Wish;
  readonly #lock: AnyLock;
  readonly #calls: readonly { readonly number: number; readonly lock: string }[];

  constructor(desk: Desk, wished: Wish) {
    this.#desk = desk;
    this.#wish = wished;
    const { lock, also } = wished;
    this.#lock = anyLock(desk.locks, wished);
    this.#calls = [lock, ...also].map((one) => ({ number: ++desk.calls, lock: one }));
  }

  async run(): Promise<void> {
    const { method, options, abortAfter, particular } = this.#wish;
    const abort = new AbortController();
    const timer = abortAfter === null ? undefined : setTimeout(() => this.#abort(abort), abortAfter);
    const given = timer ? { ...options, signal: abort.signal } : options;
    this.#ask();
    if (particular.downgrade) await this.#desk.locks.scope(() => this.#downgrade(given, timer));
    else if (particular.leads) await this.#lead(given.signal, timer);
    else if (method === "withLock") await this.#within(given, timer);
    else await this.#byHand(await this.#acquire(method, given), timer);
  }

  /** `writer`: the call that goes on as this reader. `again`: that of the term before. */
  #ask(writer?: number, again = this.#wish.particular.leads ? 0 : undefined): void {
    const { kind, method, options, particular, listens } = this.#wish;
    const patient = method === "tryLock" ? 0 : null;
    const { units, every, aligned, keep, fingerprint, throws } = particular;
    const { lease } = options;
    const told = {
      how: describeWish(this.#wish),
      lease,
      units,
      every,
      aligned,
      keep,
      fingerprint,
      throws,
      writer,
      listens,
      again,
    };
    // A caller that leads again and again is a candidate until its signal aborts: it has no other limit.
    const waits = particular.leads ? null : (options.wait ?? patient);
    const asked = kind === "once" ? 0 : waits;
    const isSlow = kind === "once" || kind === "election";
    const wait = asked !== null && isSlow ? asked + REPLY_TIMEOUT : asked;
    this.#tell((call, lock) => ({ is: "ask", call, lock, kind, wait, ...told }));
  }

  /** Leads, again behind each loss: each of its terms is told as a call of its own. */
  async #lead(signal: AbortSignal | undefined, timer: NodeJS.Timeout | undefined): Promise<void> {
    let [round, waits]: [Round, boolean] = [this, true];
    const next = (error: string): void => {
      round.#tell((call) => ({ is: "unlocked", call, error }));
      const [before] = round.#calls;
      round = new Round(this.#desk, this.#wish);
      round.#ask(undefined, before?.number);
      waits = true;
    };
    const body = async (lease: AnyLease, isLost: () => boolean): Promise<void> => {
      clearTimeout(timer);
      if (!waits) next("LOCK_LOST, by its resignation");
      waits = false;
      await round.#hold(lease);
      if (isLost()) next("LOCK_LOST");
    };
    try {
      await runAsLeader(this.#desk.locks, this.#wish.lock, body, signal);
      // It resolves too when it was stopped while it was a candidate.
      if (waits) throw signal?.reason;
      round.#tell((call) => ({ is: "unlocked", call, error: null }));
    } catch (error) {
      clearTimeout(timer);
      if (waits) round.#refused(error);
      else round.#tell((call) => ({ is: "unlocked", call, error: explain(error) }));
    }
  }

  /** Writes, and goes on as a reader: no other writer comes in between. */
  async #downgrade(options: object, timer: NodeJS.Timeout | undefined): Promise<void> {
    const lease = await this.#acquire("lock", options);
    clearTimeout(timer);
    if (!lease) return;
    await this.#hold(lease);
    const { fair = false } = this.#wish.particular;
    const reader = new Round(this.#desk, {
      ...this.#wish,
      kind: "readLock",
      options: {},
      particular: { fair },
    });
    reader.#ask(this.#calls[0]?.number);
    const read = await reader.#acquire("lock", {});
    await Promise.all([this.#unlocked(() => lease.unlock()), reader.#byHand(read, undefined)]);
  }

  #abort(controller: AbortController): void {
    this.#tell((call) => ({ is: "abort", call }));
    controller.abort(new Error("does not want it any more"));
  }

  async #acquire(method: "lock" | "tryLock", options: LockOptions): Promise<AnyLease | null> {
    try {
      const lease = await this.#lock[method](options);
      if (!lease) this.#tell((call) => ({ is: "busy", call }));
      return lease;
    } catch (error) {
      this.#refused(error);
      return null;
    }
  }

  async #byHand(lease: AnyLease | null, timer: NodeJS.Timeout | undefined): Promise<void> {
    clearTimeout(timer);
    if (!lease) return;
    await this.#hold(lease);
    await this.#unlocked(() => lease.unlock());
  }

  async #within(options: LockOptions, timer: NodeJS.Timeout | undefined): Promise<void> {
    let entered = false;
    const body = async (lease: AnyLease): Promise<string> => {
      entered = true;
      clearTimeout(timer);
      await this.#hold(lease);
      return `${this.#desk.recorder.by}#${this.#calls[0]?.number}`;
    };
    try {
      const result = await this.#lock.withLock(options, body);
      clearTimeout(timer);
      if (result && !result.ran) {
        const { token, value, at: stored } = result;
        this.#tell((call) => ({ is: "got", call, token, value, stored }));
        return;
      }
      const isUnended = this.#desk.unended.delete(this.#wish.lock);
      const error = isUnended ? "its end was not confirmed" : null;
      this.#tell((call) => ({ is: "unlocked", call, error, stored: result?.at }));
    } catch (error) {
      clearTimeout(timer);
      if (entered) this.#tell((call) => ({ is: "unlocked", call, error: explain(error) }));
      else this.#refused(error);
    }
  }

  async #hold(lease: AnyLease): Promise<void> {
    const { holding } = this.#desk;
    const at = micros();
    this.#tell((call, lock) => {
      const { held } = lease;
      return { is: "lease", call, token: lease.token(lock), left: lease.remaining, held };
    }, at);
    this.#desk.grants += this.#calls.length;
    for (const { number, lock } of this.#calls) {
      const key = lease.told(lock);
      holding.set(key, (holding.get(key) ?? new Map()).set(number, lease));
    }
    const lost = (): void => {
      this.#tell((call) => ({ is: "lost", call, reason: explain(lease.signal.reason) }));
    };
    if (this.#wish.listens) lease.signal.addEventListener("abort", lost, { once: true });
    await this.#work(lease);
    const before = micros();
    this.#tell((call) => ({ is: "unlock", call, held: lease.held }), before);
    for (const { number, lock } of this.#calls) {
      const key = lease.told(lock);
      const together = holding.get(key);
      if (together?.delete(number) && together.size === 0) holding.delete(key);
    }
  }

  async #work(lease: AnyLease): Promise<void> {
    const { hold, extend, nested, method, listens } = this.#wish;
    const end = performance.now() + hold;
    if (nested && method === "withLock") await this.#lock.withLock({}, () => delay(1)).catch(() => {});
    for (let left = hold; left > 0; left = end - performance.now()) {
      await delay(Math.min(left, LOOK_EVERY));
      this.#look(lease, "a while");
      if (listens && lease.signal.aborted) return;
    }
    if (extend === null || hold < 3) return;
    await lease.extend(extend).catch(() => {});
    this.#look(lease, "an extension");
    await delay(hold / 2);
  }

  #look(lease: AnyLease, after: "an extension" | "a while"): void {
    const at = micros();
    const { held } = lease;
    const left = lease.remaining;
    // "Held" was true before the look; "not held" is true after it.
    this.#tell((call) => ({ is: "seen", call, after, held, left }), held ? at : micros());
  }

  async #unlocked(unlock: () => Promise<void>): Promise<void> {
    try {
      await unlock();
      this.#tell((call) => ({ is: "unlocked", call, error: null }));
    } catch (error) {
      this.#tell((call) => ({ is: "unlocked", call, error: explain(error) }));
    }
  }

  #refused(error: unknown): void {
    const isBusy = error instanceof Error && error.name === "LockTimeoutError";
    this.#tell((call) => (isBusy ? { is: "busy", call } : { is: "failed", call, error: explain(error) }));
  }

  #tell(told: (call: number, lock: string) => Told, at?: number): void {
    for (const { number, lock } of this.#calls) this.#desk.recorder.tell(told(number, lock), at);
  }
}

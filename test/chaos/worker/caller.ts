import { setTimeout as delay } from "node:timers/promises";
import type { Lease, LockClient, LockOptions, MultiLease } from "../../../src/index.ts";
import type { Dice } from "../dice.ts";
import { micros, type Told } from "../history/events.ts";
import type { Recorder } from "../history/recorder.ts";
import { explain } from "./explain.ts";
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
  readonly dice: Dice;
  readonly recorder: Recorder;
  /** Calls by lock and token, for the events of the client. */
  readonly holding: Map<string, number>;
  calls: number;
  grants: number;
  isOpen: boolean;
}

/** Asks for locks, holds them, gives them back, and tells all of it, until the desk is closed. */
export async function caller(desk: Desk): Promise<void> {
  while (desk.isOpen) {
    await delay(desk.dice.int(0, desk.dice.chance(0.2) ? 150 : 12));
    if (desk.isOpen) await new Round(desk).run();
  }
}

type AnyLease = Lease | MultiLease;

interface AnyLock {
  lock(options: LockOptions): Promise<AnyLease>;
  tryLock(options: LockOptions): Promise<AnyLease | null>;
  withLock(body: (lease: AnyLease) => Promise<void>, options?: LockOptions): Promise<void>;
}

function lockOf(locks: LockClient, { kind, lock, also }: Wish): AnyLock {
  if (kind === "multiLock") return locks.multiLock([lock, ...also]);
  return locks[kind === "quorumLock" ? "lock" : kind](lock);
}

/** Of one lock, or of several that are taken together: each of those is told as a call of its own. */
class Round {
  readonly #desk: Desk;
  readonly #wish: Wish;
  readonly #lock: AnyLock;
  readonly #calls: readonly { readonly number: number; readonly lock: string }[];

  constructor(desk: Desk) {
    this.#desk = desk;
    this.#wish = wish(desk);
    const { lock, also } = this.#wish;
    this.#lock = lockOf(desk.locks, this.#wish);
    this.#calls = [lock, ...also].map((one) => ({ number: ++desk.calls, lock: one }));
  }

  async run(): Promise<void> {
    const { kind, method, options, abortAfter } = this.#wish;
    const abort = new AbortController();
    const timer = abortAfter === null ? undefined : setTimeout(() => this.#abort(abort), abortAfter);
    const given = timer ? { ...options, signal: abort.signal } : options;
    const patient = method === "tryLock" ? 0 : null;
    const how = describeWish(this.#wish);
    this.#tell((call, lock) => ({ is: "ask", call, lock, kind, wait: options.wait ?? patient, how }));
    if (method === "withLock") await this.#within(given, timer);
    else await this.#byHand(await this.#acquire(method, given), timer);
  }

  #abort(controller: AbortController): void {
    this.#tell((call) => ({ is: "abort", call }));
    controller.abort(new Error("does not want it any more"));
  }

  async #acquire(method: "lock" | "tryLock", options: object): Promise<AnyLease | null> {
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

  async #within(options: object, timer: NodeJS.Timeout | undefined): Promise<void> {
    let entered = false;
    const body = async (lease: AnyLease): Promise<void> => {
      entered = true;
      clearTimeout(timer);
      await this.#hold(lease);
    };
    const whole = () => this.#lock.withLock(body, options);
    try {
      await whole();
      this.#tell((call) => ({ is: "unlocked", call, error: null }));
    } catch (error) {
      clearTimeout(timer);
      if (entered) this.#tell((call) => ({ is: "unlocked", call, error: explain(error) }));
      else this.#refused(error);
    }
  }

  async #hold(lease: AnyLease): Promise<void> {
    const { holding } = this.#desk;
    const token = (lock: string): number =>
      typeof lease.token === "function" ? lease.token(lock) : lease.token;
    const at = micros();
    this.#tell((call, lock) => ({ is: "lease", call, token: token(lock), left: lease.remaining() }), at);
    this.#desk.grants += this.#calls.length;
    for (const { number, lock } of this.#calls) holding.set(`${lock} ${token(lock)}`, number);
    const lost = (): void => {
      this.#tell((call) => ({ is: "lost", call, reason: explain(lease.signal.reason) }));
    };
    if (this.#wish.listens) lease.signal.addEventListener("abort", lost, { once: true });
    await this.#work(lease);
    this.#tell((call) => ({ is: "unlock", call, held: lease.held }));
    for (const { lock } of this.#calls) holding.delete(`${lock} ${token(lock)}`);
  }

  async #work(lease: AnyLease): Promise<void> {
    const { hold, extend, nested, method, listens } = this.#wish;
    const end = performance.now() + hold;
    if (nested && method === "withLock") await this.#lock.withLock(() => delay(1)).catch(() => {});
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
    const left = lease.remaining();
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

import { setTimeout as delay } from "node:timers/promises";
import type { Lease, Lock, LockClient } from "../../../src/index.ts";
import type { Dice } from "../dice.ts";
import { micros, type Told } from "../history/events.ts";
import type { Recorder } from "../history/recorder.ts";
import { explain } from "./explain.ts";
import { describeWish, type Wish, wish } from "./wish.ts";

/** ms between two looks at a lease while it is held. */
const LOOK_EVERY = 40;

/** What the callers of a worker share. */
export interface Desk {
  readonly locks: LockClient;
  readonly names: readonly string[];
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

class Round {
  readonly #desk: Desk;
  readonly #call: number;
  readonly #wish: Wish;
  readonly #lock: Lock;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.#call = ++desk.calls;
    this.#wish = wish(desk.dice, desk.names);
    this.#lock = desk.locks[this.#wish.kind](this.#wish.lock);
  }

  async run(): Promise<void> {
    const { lock, kind, method, options, abortAfter } = this.#wish;
    const abort = new AbortController();
    const timer = abortAfter === null ? undefined : setTimeout(() => this.#abort(abort), abortAfter);
    const given = timer ? { ...options, signal: abort.signal } : options;
    const patient = method === "tryLock" ? 0 : null;
    this.#tell({
      is: "ask",
      call: this.#call,
      lock,
      kind,
      wait: options.wait ?? patient,
      how: describeWish(this.#wish),
    });
    if (method === "withLock") await this.#within(given, timer);
    else await this.#byHand(await this.#acquire(method, given), timer);
  }

  #abort(controller: AbortController): void {
    this.#tell({ is: "abort", call: this.#call });
    controller.abort(new Error("does not want it any more"));
  }

  async #acquire(method: "lock" | "tryLock", options: object): Promise<Lease | null> {
    try {
      const lease = await this.#lock[method](options);
      if (!lease) this.#tell({ is: "busy", call: this.#call });
      return lease;
    } catch (error) {
      this.#refused(error);
      return null;
    }
  }

  async #byHand(lease: Lease | null, timer: NodeJS.Timeout | undefined): Promise<void> {
    clearTimeout(timer);
    if (!lease) return;
    await this.#hold(lease);
    await this.#unlocked(() => lease.unlock());
  }

  async #within(options: object, timer: NodeJS.Timeout | undefined): Promise<void> {
    let entered = false;
    const body = async (lease: Lease): Promise<void> => {
      entered = true;
      clearTimeout(timer);
      await this.#hold(lease);
    };
    const whole = () => this.#lock.withLock(body, options);
    try {
      await whole();
      this.#tell({ is: "unlocked", call: this.#call, error: null });
    } catch (error) {
      clearTimeout(timer);
      if (entered) this.#tell({ is: "unlocked", call: this.#call, error: explain(error) });
      else this.#refused(error);
    }
  }

  async #hold(lease: Lease): Promise<void> {
    const call = this.#call;
    const at = micros();
    this.#tell({ is: "lease", call, token: lease.token, left: lease.remaining() }, at);
    this.#desk.grants++;
    const key = `${lease.name} ${lease.token}`;
    this.#desk.holding.set(key, call);
    const lost = (): void => this.#tell({ is: "lost", call, reason: explain(lease.signal.reason) });
    if (this.#wish.listens) lease.signal.addEventListener("abort", lost, { once: true });
    await this.#work(lease);
    this.#tell({ is: "unlock", call, held: lease.held });
    this.#desk.holding.delete(key);
  }

  async #work(lease: Lease): Promise<void> {
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

  #look(lease: Lease, after: "an extension" | "a while"): void {
    const at = micros();
    const { held } = lease;
    const seen: Told = { is: "seen", call: this.#call, after, held, left: lease.remaining() };
    // That he has it was true before the look, and that he has not is true after it.
    this.#tell(seen, held ? at : micros());
  }

  async #unlocked(unlock: () => Promise<void>): Promise<void> {
    try {
      await unlock();
      this.#tell({ is: "unlocked", call: this.#call, error: null });
    } catch (error) {
      this.#tell({ is: "unlocked", call: this.#call, error: explain(error) });
    }
  }

  #refused(error: unknown): void {
    const isBusy = error instanceof Error && error.name === "LockTimeoutError";
    this.#tell(
      isBusy ? { is: "busy", call: this.#call } : { is: "failed", call: this.#call, error: explain(error) },
    );
  }

  #tell(told: Told, at?: number): void {
    this.#desk.recorder.tell(told, at);
  }
}

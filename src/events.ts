import { EventEmitter } from "eventemitter3";
import { LockError, type LockLostError } from "./errors.ts";
import { outside } from "./outside.ts";

/** What a client tells. Times are in ms. */
export interface LockEvents {
  /** A caller got the lock, after `waited` ms. */
  acquire: (event: { name: string; token: number; waited: number }) => void;
  /**
   * A caller has to wait. `holder` is "this client" when it has waited longer than its lease time for a lock that this
   * very client holds: nearly always a deadlock with itself.
   */
  wait: (event: { name: string; holder: "this client" | "unknown"; waited: number }) => void;
  /** A caller gave the lock back after `held` ms. */
  release: (event: { name: string; token: number; held: number }) => void;
  /** The watchdog raised a lease; `remaining` ms are left. */
  renew: (event: { name: string; token: number; remaining: number }) => void;
  /** A lease was lost; its signal aborts right after. */
  lost: (event: { name: string; token: number; error: LockLostError }) => void;
  /** Something failed that no caller was told of. Unheard, it becomes a process warning, once per code and minute. */
  error: (error: Error) => void;
}

const MINUTE = 60_000;

/** The client's events. Emitting costs nothing while nobody listens, and a throwing listener stops nothing. */
export class Events {
  readonly #emitter = new EventEmitter();
  readonly #warned = new Map<string, number>();

  on<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): void {
    this.#emitter.on(event, listener);
  }

  once<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): void {
    this.#emitter.once(event, listener);
  }

  off<K extends keyof LockEvents>(event: K, listener: LockEvents[K]): void {
    this.#emitter.off(event, listener);
  }

  /** `make` runs only when somebody listens. */
  tell<K extends Exclude<keyof LockEvents, "error">>(
    event: K,
    make: () => Parameters<LockEvents[K]>[0],
  ): void {
    if (this.#emitter.listenerCount(event) === 0) return;
    try {
      outside(() => this.#emitter.emit(event, make()));
    } catch (error) {
      this.report(error);
    }
  }

  /** An error that no caller sees. */
  report(error: unknown): void {
    const known = error instanceof Error ? error : new Error(String(error));
    if (this.#emitter.listenerCount("error") > 0) {
      try {
        outside(() => this.#emitter.emit("error", known));
        return;
      } catch (thrown) {
        this.#warn(thrown instanceof Error ? thrown : known);
        return;
      }
    }
    this.#warn(known);
  }

  #warn(error: Error): void {
    const code = error instanceof LockError ? error.code : error.name;
    const now = performance.now();
    const last = this.#warned.get(code);
    if (last !== undefined && now - last < MINUTE) return;
    this.#warned.set(code, now);
    process.emitWarning(error.message, { type: "HoldfastWarning", code, detail: error.stack ?? "" });
  }
}

import { expect } from "vitest";

/** ms */
export const LEASE = 800;

export interface Held {
  readonly signal: AbortSignal;
  readonly held: boolean;
  readonly remaining: number;
  assertHeld(): void;
}

/** Blocks this process's only thread, as a long computation does. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** The lines after the pause. */
export function pauses(held: Held): void {
  const { signal } = held;
  expect([signal.aborted, held.held]).toEqual([false, true]);
  block(LEASE + 50);
  // Taken out of the lease before the pause, and not read through it since: late.
  expect(signal.aborted).toBe(false);
  expect(() => held.signal.throwIfAborted()).toThrow(/ran out/);
  expect([signal.aborted, held.signal, held.held, held.remaining]).toEqual([true, signal, false, 0]);
  expect(() => held.assertHeld()).toThrow(signal.reason);
}

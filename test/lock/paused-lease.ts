import { expect } from "vitest";
import { block } from "../support/block.ts";

/** ms */
export const LEASE = 800;

interface Held {
  readonly signal: AbortSignal;
  readonly held: boolean;
  readonly remaining: number;
  assertHeld(): void;
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

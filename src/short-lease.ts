import { SHORT_LEASE } from "./defaults.ts";

let isTold = false;

/** Warns, once in a process, of a lease that was meant to be in seconds. */
export function warnOfShortLease(leaseTime: number): void {
  if (leaseTime >= SHORT_LEASE || isTold) return;
  isTold = true;
  process.emitWarning(
    `A lock client was created with a leaseTime of ${leaseTime} ms, which a slow answer of Redis or a busy event loop can outlast: ` +
      "it is in milliseconds, and 30 seconds are 30_000.",
    { type: "HoldfastWarning", code: "LOCK_SHORT_LEASE" },
  );
}

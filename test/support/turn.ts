import type { BaseLease } from "../../src/index.ts";
import { LeaseHandle } from "../../src/locks/lease.ts";

/**
 * The number in Redis of a holder's turn: for a lock its token; for permits a number that grows
 * likewise and that no user sees, because it fences nothing.
 */
export const turnOf = (lease: BaseLease): number => LeaseHandle.sharedOf(lease as LeaseHandle).token;

/** The call that took it, by its number in the client's events. */
export const callOf = (lease: BaseLease): number => LeaseHandle.sharedOf(lease as LeaseHandle).call;

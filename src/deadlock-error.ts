import { LockError, quote } from "./errors.ts";
import { type Party, showParty } from "./party.ts";

/** One lock of a circle of callers that wait for each other. */
export interface DeadlockLink {
  readonly name: string;
  readonly kind: "lock" | "readWrite" | "semaphore";
  /** The hold that is in the way: its caller waits for the next lock of the circle. */
  readonly holder: Party;
}

/**
 * The call waited for a lock whose holder waits, over others perhaps, for a lock that the call's own scope holds, and it began to
 * wait last of them. It waits no longer, so that the others go on when its scope ends. Of a client with `deadlocks: "reject"`.
 */
export class DeadlockError extends LockError {
  override readonly name = "DeadlockError";

  constructor(
    lockName: string,
    /** From the lock that this call waited for to the one that its own scope holds. */
    readonly cycle: readonly DeadlockLink[],
  ) {
    super(
      "DEADLOCK",
      lockName,
      `Lock ${quote(lockName)} is not waited for any more, because of a deadlock: ${circleText(cycle)}`,
    );
  }
}

/** As messages tell it, with what to do about it. */
export function circleText(cycle: readonly DeadlockLink[]): string {
  const last = cycle.length - 1;
  const links = cycle.map(({ name, holder }, i) =>
    i === last
      ? `${quote(name)}, held by the scope of this call`
      : `${quote(name)}, held by ${showParty(holder)}, which waits for `,
  );
  return `${links.join("")}; take such locks in one order everywhere, or all of them by one multiLock().`;
}

import type { AcquireRequest } from "../core/waiter.ts";
import type { CallSite } from "./call-site.ts";

/** A call's options, checked and complete. */
export interface Request extends AcquireRequest {
  /** The lease that was asked for as a number; null: none. A re-entry extends to it. */
  readonly explicit: number | null;
  /**
   * May it enter its scope's holds, and may calls of its scope enter its hold? By its own option,
   * or its lock's or client's.
   */
  readonly reentrant: boolean;
  /** Its own option. Left out: not given. */
  readonly says?: boolean | undefined;
  /** The line of the application that made it. Left out: no check needs it. */
  readonly callSite?: CallSite | null;
}

import { detached } from "./detached.ts";
import { setTimeout } from "./real-timers.ts";

/**
 * A timer for the client's own work, which may outlive the call that sets it: it keeps neither the
 * process alive nor the caller's asynchronous context.
 */
export const clientTimer = (ring: () => void, ms: number): NodeJS.Timeout =>
  detached(() => setTimeout(ring, ms).unref());

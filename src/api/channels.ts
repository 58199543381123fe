// What this process publishes to observers (`node:diagnostics_channel`), for all clients:
// docs/events.md. A channel without subscribers costs one check of a constant.
import { channel, tracingChannel } from "node:diagnostics_channel";

/** From the call to the lock, or to the call's other end. */
export const acquiring = tracingChannel<unknown, object>("holdfast:acquire");
/** From the lock to its end. */
export const holding = tracingChannel<unknown, object>("holdfast:hold");
/** Events that have a channel. */
export const POINTS = {
  lost: channel("holdfast:lost"),
  giveup: channel("holdfast:giveup"),
  renew: channel("holdfast:renew"),
  recall: channel("holdfast:recall"),
  error: channel("holdfast:error"),
};
/** The event loop was blocked for longer than leases can tolerate. */
export const stalled = channel("holdfast:stall");

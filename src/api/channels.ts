// What is told to whatever observes this process (`node:diagnostics_channel`), of all clients:
// docs/events.md. A channel without subscribers costs one look at a constant.
import { channel, tracingChannel } from "node:diagnostics_channel";

/** From the call to the lock, or to what came of it. */
export const acquiring = tracingChannel<unknown, object>("holdfast:acquire");
/** From the lock to its end. */
export const holding = tracingChannel<unknown, object>("holdfast:hold");
/** Events that have a channel. */
export const POINTS = {
  lost: channel("holdfast:lost"),
  giveup: channel("holdfast:giveup"),
  renew: channel("holdfast:renew"),
  recall: channel("holdfast:recall"),
};
/** The event loop stood still for longer than leases can bear. */
export const stalled = channel("holdfast:stall");

/**
 * What faults did in a run, counted: a fault that does nothing finds nothing. Over the fixed seeds
 * none of these numbers may be 0.
 */
export class Effects {
  /** Commands that came to Redis long after the connection that had carried them was gone. */
  "late copies run" = 0;
  /** Scripts that were sent before a connection broke, and never ran. */
  "commands lost" = 0;
  /** Scripts that were sent once more, by the next connection. */
  "commands sent again" = 0;
  /** Replies that did not reach their client. */
  "replies lost" = 0;
  /** Messages for a client that did not reach it. */
  "messages lost" = 0;
  /** Commands that Redis refused, because it had forgotten their script. */
  "scripts forgotten" = 0;
  /** Commands that Redis refused, because they came too late. */
  "commands too late" = 0;
  /** Holds that a late copy brought back. */
  "holds brought back" = 0;
  /** Holds that another caller took away. */
  "holds force-released" = 0;
  /** Messages that no script has written. */
  "messages forged" = 0;
  /** Calls that failed because there was no token left. */
  "tokens used up" = 0;
  /** Events that waited because their process stood still. */
  "events of paused processes" = 0;
  /** Processes that ended by `process.exit()`, with locks to release. */
  "exits with locks" = 0;
}

type Effect = keyof Effects;

/** The effects that none of these runs has. */
export function missing(runs: readonly { readonly effects: Effects }[]): string[] {
  const sum = (effect: Effect): number => runs.reduce((all, { effects }) => all + effects[effect], 0);
  return (Object.keys(new Effects()) as Effect[]).filter((effect) => sum(effect) === 0);
}

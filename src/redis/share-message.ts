/** A hold of a counted resource was given its units. */
export interface Share {
  readonly token: number;
  /** The server's time in µs when its end was set, and its TTL in ms. */
  readonly at: number;
  readonly ttl: number;
  /** Does anybody stand in the queue behind the run that it was given in? */
  readonly waits: boolean;
  readonly units: number;
  readonly hold: string;
  /** The resource's full key, prefix included. */
  readonly key: string;
}

const SHARE = /^share (\d{16}) (\d{1,16}) (\d{1,12}) ([01]) (\d{1,7}) ([!-~]+) (.+)$/s;

/**
 * `share <token> <server µs> <TTL ms> <waits 0/1> <units> <hold> <key>`. Null: it is none. A number that no script would write
 * makes it none. Whether somebody asked for it, and for so many units, the receiver knows.
 */
export function decodeShare(message: string): Share | null {
  const [, token, at, ttl, waits, units, hold, key] = SHARE.exec(message) ?? [];
  if (hold === undefined || key === undefined) return null;
  const share = { token: Number(token), at: Number(at), ttl: Number(ttl), units: Number(units) };
  if (!Object.values(share).every((number) => Number.isSafeInteger(number) && number > 0)) return null;
  return { ...share, waits: waits === "1", hold, key };
}

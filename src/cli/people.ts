// Holders and waiters as people are shown them.
import { showDuration } from "./durations.ts";

/** What is known of a holder or a waiter, by whatever view. */
export interface Person {
  readonly label?: string | null;
  readonly host: string | null;
  readonly pid: number | null;
}

/** "nightly invoice (web-1:4711)". `id`: what is shown where nothing else is known. */
export function showPerson(owner: Person | null, id: string): string {
  const place = owner?.host ? `${owner.host}:${owner.pid}` : null;
  if (owner?.label) return place === null ? owner.label : `${owner.label} (${place})`;
  return place ?? id;
}

/** "held by … for 3 min". `since` and `now`: ms since 1970, by one clock. */
export function showHolder(
  owner: Person | null,
  id: string,
  since: number | null,
  now: number | null,
): string {
  const time = since === null || now === null ? "" : ` for ${showDuration(now - since)}`;
  return `held by ${showPerson(owner, id)}${time}`;
}

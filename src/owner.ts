import { TIME_TOKEN_MIN } from "./defaults.ts";
import { partsOf, withoutBits } from "./hold-ids.ts";
import { labelOf } from "./label.ts";

/** A holder or a waiter, as people see it. Null is what is not known: of what another library has written, nearly all. */
export interface Owner {
  /** `<client id>:<number of the hold>`; what another library has written, as it is. */
  readonly id: string;
  /**
   * What the call was given as `label`, else its client. It is that caller's own text, control characters included: escape it
   * before it is printed.
   */
  readonly label: string | null;
  /** The `id` of its lock client. */
  readonly client: string | null;
  /** The name of its host: in Kubernetes that of its pod, where every `pid` is 1. */
  readonly host: string | null;
  readonly pid: number | null;
  /** The number of the hold, of its client. */
  readonly number: number | null;
  /** Since when it holds the lock, or waits for it: ms since 1970 by the server's clock. */
  readonly since: number | null;
}

/**
 * `text`: a hold as it stands in Redis, with the label of its call behind a space. `micros`: its token or ticket, which are the
 * server's time in µs, or a little more where many were given at once; null: it has none that is a time. `now`: the server's time
 * in µs.
 */
export function ownerOf(text: string, micros: number | null, now = Number.POSITIVE_INFINITY): Owner {
  const end = text.indexOf(" ");
  const id = withoutBits(end < 0 ? text : text.slice(0, end));
  const parts = partsOf(id);
  const isTime = micros !== null && micros >= TIME_TOKEN_MIN;
  const since = isTime ? Math.floor(Math.min(micros, now) / 1_000) : null;
  if (!parts) return { ...NOBODY, id: withoutBits(text), since };
  const { client } = parts;
  return { id, label: labelOf(end < 0 ? "" : text.slice(end + 1), client), ...parts, since };
}

const NOBODY = { label: null, client: null, host: null, pid: null, number: null };

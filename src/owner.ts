import { partsOf } from "./hold-ids.ts";

/** A holder or a waiter, as people see it. What another library has written has no parts. */
export interface Owner {
  /** `<client id>:<number of the hold>`. */
  readonly id: string;
  /** What its call said of itself, else what its client did; null: neither has said anything. */
  readonly label: string | null;
  /** The `id` of its lock client. */
  readonly client: string | null;
  /** The name of its host: in Kubernetes that of its pod, where every `pid` is 1. */
  readonly host: string | null;
  readonly pid: number | null;
  /** The number of the hold, of its client. */
  readonly number: number | null;
  /** When it got the lock, or began to wait: ms since 1970 by the clock of the server. Null: nothing says it. */
  readonly since: number | null;
}

/** Of a hold as `withoutBits` shows it. */
export function ownerOf(id: string, since: number | null): Owner {
  const { client, host, pid, number } = partsOf(id) ?? { client: null, host: null, pid: null, number: null };
  return { id, label: null, client, host, pid, number, since };
}

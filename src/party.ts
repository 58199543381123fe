import { TIME_TOKEN_MIN } from "./defaults.ts";
import { partsOf, withoutBits } from "./hold-ids.ts";
import { labelOf } from "./label.ts";
import { visible } from "./util/visible.ts";

/**
 * One who holds or waits, as people see it. These names mean the same wherever parties are shown: in `inspect()`, `list()`,
 * errors, events, elections, the page's JSON and the command line's `--json`.
 *
 * | field | what | null |
 * |---|---|---|
 * | `holder` | the `Party` that holds | it is free |
 * | `holders` | all of them, where several may hold | – |
 * | `waiters` | waiting processes in the order of their places, the next one first; `[]`: no process waits | Redis keeps no queue of this kind (spin, Redisson, several masters) |
 * | `since` | ms since 1970 by the server's clock, since when it has held or waited | what is in Redis does not say |
 * | `heldFor`, `waitedFor` | the same as ms up to when Redis was asked | what is in Redis does not say |
 * | `remaining` | whole ms until the hold ends unless it is renewed; Infinity: no end is set | it is free |
 * | `token` | the fencing token of the hold | it is free, or its kind has none |
 * | `units` | permits of a semaphore; of others 1 | – |
 * | `mode` | "read" or "write" of a read-write lock | it is another kind |
 */
export interface Party {
  /**
   * `<client id>:<number of the hold>`; what another library has written, as it is; of a leader that has told its address, the
   * id of its client.
   */
  readonly id: string;
  /**
   * The `label` of the call, else of its client; null: neither has one. It is that caller's own text, control characters
   * included: escape it before you print it.
   */
  readonly label: string | null;
  /** The name of its host: in Kubernetes that of its pod, where every `pid` is 1. Null: another library wrote it. */
  readonly host: string | null;
  readonly pid: number | null;
  /** Since when it holds the lock, or waits for it: ms since 1970 by the server's clock. Null: not known. */
  readonly since: number | null;
}

/** A party that holds, with what it has. */
export interface HoldingParty extends Party {
  /** ms that it has held the lock. Null: not known. */
  readonly heldFor: number | null;
  /** ms until its hold ends unless it is renewed; Infinity: no end is set. */
  readonly remaining: number;
  /** Its fencing token. Null: its kind has none. */
  readonly token: number | null;
  /** Permits of a semaphore; of others 1. */
  readonly units: number;
  /** Of a read-write lock. Null: it is another kind. */
  readonly mode: "read" | "write" | null;
}

/** A waiting process, or at a fair lock a waiting caller, with what it wants. */
export interface WaitingParty extends Party {
  /** ms that it has waited. Null: not known. */
  readonly waitedFor: number | null;
  /** Permits of a semaphore; of others 1. */
  readonly units: number;
  /** Of a read-write lock. Null: it is another kind. */
  readonly mode: "read" | "write" | null;
}

/**
 * `text`: a hold as it stands in Redis, with the label of its call behind a space. `micros`: its token or ticket, which are the
 * server's time in µs, or a little more where many were given at once; null: it has none that is a time. `now`: the server's time
 * in µs.
 */
export function partyOf(text: string, micros: number | null, now = Number.POSITIVE_INFINITY): Party {
  const end = text.indexOf(" ");
  const id = withoutBits(end < 0 ? text : text.slice(0, end));
  const parts = partsOf(id);
  const since = micros === null ? null : sinceOf(micros, now);
  if (!parts) return { id: withoutBits(text), label: null, host: null, pid: null, since };
  const { client, host, pid } = parts;
  return { id, label: labelOf(end < 0 ? "" : text.slice(end + 1), client), host, pid, since };
}

/** A leader by what it has told: the id of its client, the label of its call as one word, and its token. */
export function leaderOf(client: string, label: string, token: number): Party {
  const { host = null, pid = null } = partsOf(`${client}:0`) ?? {};
  return { id: client, label: labelOf(label, client), host, pid, since: sinceOf(token) };
}

/** As messages and the command line name it: "nightly invoice (web-1:4711)", "web-1:4711", or by the id that another library wrote. */
export function showParty({ label, host, pid, id }: Omit<Party, "since">): string {
  // Another library's id has any length.
  if (host === null) return visible(label ?? id.slice(0, ID_SHOWN));
  const place = `${visible(host)}:${pid}`;
  return label === null ? place : `${visible(label)} (${place})`;
}

const ID_SHOWN = 100;

/** The id of the lock client of a party; of another library's its own id. */
export const clientOf = ({ id }: Pick<Party, "id">): string => partsOf(id)?.client ?? id;

/** What a holder has beside its name. */
type Held = Pick<HoldingParty, "remaining" | "token"> & Partial<Pick<HoldingParty, "units" | "mode">>;

// Field by field: a spread costs 5 µs, more than all else that is done for a lock of a list.

/** `at`: when Redis was asked, by its clock; null: it did not say. */
export function holding(
  { id, label, host, pid, since }: Party,
  at: number | null,
  { remaining, token, units = 1, mode = null }: Held,
): HoldingParty {
  return { id, label, host, pid, since, heldFor: passed(at, since), remaining, token, units, mode };
}

export function waiting(
  { id, label, host, pid, since }: Party,
  at: number | null,
  units = 1,
  mode: WaitingParty["mode"] = null,
): WaitingParty {
  return { id, label, host, pid, since, waitedFor: passed(at, since), units, mode };
}

/** In ms. Null: it is a count, and no time. */
const sinceOf = (micros: number, now = Number.POSITIVE_INFINITY): number | null =>
  micros >= TIME_TOKEN_MIN ? Math.floor(Math.min(micros, now) / 1_000) : null;

/** ms. The server's clock may have gone back. */
const passed = (at: number | null, since: number | null): number | null =>
  since === null || at === null ? null : Math.max(0, Math.floor(at) - since);

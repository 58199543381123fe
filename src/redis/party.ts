import { labelOf } from "../api/label.ts";
import type { Listed } from "../api/list.ts";
import type { HoldingParty, Party, WaitingParty } from "../api/party.ts";
import { TIME_TOKEN_MIN } from "../defaults.ts";
import { partsOf, withoutBits } from "./hold-ids.ts";

/**
 * `text`: a hold as stored in Redis, with its call's label after a space. `micros`: its token or
 * ticket. These are the server's time in µs, or slightly more if many were given at once; null: it
 * has none that is a time. `now`: the server's time in µs.
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

/** From a client's id alone: its label, and where it runs. */
export function partyOfClient(client: string): Pick<Party, "label" | "host" | "pid"> {
  const { host = null, pid = null } = partsOf(`${client}:0`) ?? {};
  return { label: labelOf("", client), host, pid };
}

/**
 * A leader from its proclamation: the id of its client, the label of its call as one word, and its
 * token.
 */
export function leaderOf(client: string, label: string, token: number): Party {
  const { host = null, pid = null } = partsOf(`${client}:0`) ?? {};
  return { id: client, label: labelOf(label, client), host, pid, since: sinceOf(token) };
}

/** The id of the party's lock client; for another library its own id. */
export const clientOf = ({ id }: Pick<Party, "id">): string => partsOf(id)?.client ?? id;

/** The fields of a holder besides its name. */
type Held = Pick<HoldingParty, "remaining" | "token"> & Partial<Pick<HoldingParty, "units" | "mode">>;

// Field by field: a spread costs 5 µs, more than everything else per lock of a list.

/** `at`: when Redis was asked, by its clock; null: unknown. */
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

/** In ms. The server's clock may have gone back. */
const passed = (at: number | null, since: number | null): number | null =>
  since === null || at === null ? null : Math.max(0, Math.floor(at) - since);

/** Do its waiters only stand by? The candidates of an election wait for as long as its leader is well. */
export const isStandby = ({ kind, holder }: Pick<Listed, "kind" | "holder">): boolean =>
  kind === "election" && holder !== null;

/**
 * How many processes wait. Precisely, how many lock clients: usually one per process. A lock has
 * one place for all callers of a client, and a fair lock one for each caller.
 */
export const waitingProcesses = ({ waiters }: Pick<Listed, "waiters">): number =>
  new Set(waiters?.map(clientOf)).size;

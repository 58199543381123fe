import type { Reported, ShownLock, ShownParty } from "../src/tools/ui/shown.ts";
import { visible } from "../src/util/visible.ts";

const two = (number: number): string => String(Math.floor(number)).padStart(2, "0");

/** "420 ms", "3.2 s", "42 s", "3 min 07 s", "14 min", "2 h 05 min", "3 d 4 h". */
export function time(ms: number | null): string {
  if (ms === null) return "–";
  const s = Math.max(0, ms) / 1_000;
  if (s < 1) return `${Math.round(s * 1_000)} ms`;
  if (s < 10) return `${(Math.floor(s * 10) / 10).toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 3_600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3_600)} h ${two((s / 60) % 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s / 3_600) % 24)} h`;
}

const NUMBER = new Intl.NumberFormat("en");
export const number = (count: number): string => NUMBER.format(count).replaceAll(",", " ");

export const many = (count: number, one: string, more = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : more}`;

/** "billing@2.3", or where it runs. */
export function nameOf(party: ShownParty): string {
  return party.label === null ? placeOf(party) : visible(party.label);
}

export const placeOf = ({ host, pid, id }: Pick<ShownParty, "host" | "pid" | "id">): string =>
  host === null ? visible(id) : `${visible(host)}:${pid}`;

/** "0.4 ms", "12 ms", "1.2 s": of an answer. */
export const duration = (ms: number): string => (ms < 10 ? `${ms.toFixed(1)} ms` : time(ms));

/** "820 kB", "12 MB", "3.4 GB". */
export function size(bytes: number): string {
  const power = Math.min(3, Math.max(1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3)));
  const amount = bytes / 1_000 ** power;
  return `${amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${["", "kB", "MB", "GB"][power]}`;
}

const KINDS = {
  lock: "lock",
  readWrite: "read-write",
  semaphore: "semaphore",
  election: "election",
  remember: "remember",
  redisson: "Redisson",
} as const;

export const kindOf = (kind: ShownLock["kind"]): string => KINDS[kind];

export const linkTo = ({ kind, name }: Pick<ShownLock, "kind" | "name">): string =>
  `#/lock/${kind}/${encodeURIComponent(name)}`;

/** The view of all locks, with its filters. */
export const linkToNow = (filters: URLSearchParams): string => `#/now?${filters}`.replace(/\?$/, "");

/** "nightly invoices, billing-7c9f:1": the client that reported a call. */
export function clientOf({ client, label, host, pid }: Reported): string {
  const place = placeOf({ host, pid, id: client });
  return label === null ? place : `${visible(label)}, ${place}`;
}

import type { Run } from "./run.ts";

/** A hold in Redis. */
export interface Owned {
  readonly key: string;
  /** As callers name it: "lock:a". */
  readonly name: string;
  readonly hold: string;
  /** The number of its process. */
  readonly process: number;
  /** Its end, in ms of the server's time. */
  readonly until: number;
}

/** The families whose keys these functions read. */
const LOCKS =
  /^holdfast:(?:(?:rw|semaphore|election|remember):)?\{((?:lock|fair|mixed|rw|frw|sem|fsem|election|remember):\w)\}$/;
/** Keys of locks with a grant window: `lock`, `fairLock`, and runs of `remember`. */
export const HANDOFF = /^holdfast:(?:remember:)?\{/;
/** format, told, token, since: see lua/handoff. */
const HOLD_AT = 37;
/** A field of lua/counted: format, mode, end, units, token. */
const FIELD = /^1[a-z] (\d{13}) /;

const processOf = (text: string): number => Number(/\bhost(\d+):/.exec(text)?.[1] ?? Number.NaN);

/** A hold's id is its client's channel, and 21 letters and digits of its own. */
export const channelOf = (hold: string): string => hold.slice(0, -22);

/** By key: runs have few of them, and ask often. */
const names = new Map<string, string | null>();

export function nameOf(key: string): string | null {
  let name = names.get(key);
  if (name === undefined) {
    name = LOCKS.exec(key)?.[1] ?? null;
    names.set(key, name);
  }
  return name;
}

/** The holds of one key. */
export function ownersOf({ server: { redis } }: Run, key: string): Owned[] {
  const name = nameOf(key);
  const kept = name === null ? undefined : redis.find(key);
  if (name === null || !kept) return [];
  const owned = (hold: string, until: number) => ({ key, name, hold, process: processOf(hold), until });
  if (kept.type === "string") return [owned(kept.value.slice(HOLD_AT).split(" ")[0] ?? "", kept.until)];
  if (kept.type !== "hash") return [];
  return [...kept.value].flatMap(([hold, field]) => {
    const until = Number(FIELD.exec(field)?.[1]);
    return until > redis.ms ? [owned(hold, until)] : [];
  });
}

/** All holds in Redis. While a run is inspected they are read once. */
export function owners(run: Run): readonly Owned[] {
  if (!run.inspected) return readOwners(run);
  run.inspected.owners ??= readOwners(run);
  return run.inspected.owners;
}

const readOwners = (run: Run): Owned[] =>
  [...run.server.redis.keys.keys()].flatMap((key) => (nameOf(key) === null ? [] : ownersOf(run, key)));

/** A place in a queue. */
export interface Entry {
  readonly key: string;
  readonly name: string;
  readonly entry: string;
  readonly hold: string;
  readonly process: number;
  /** Its ticket: the server's time in µs. */
  readonly ticket: number;
}

/** The places in one queue. */
export function entriesOf({ server: { redis } }: Run, key: string): Entry[] {
  const name = key.endsWith(QUEUE) ? nameOf(key.slice(0, -QUEUE.length)) : null;
  const kept = redis.find(key);
  if (name === null || kept?.type !== "zset") return [];
  return kept.value.members.map((entry) => ({
    key,
    name,
    entry,
    hold: HOLD.exec(entry)?.[0] ?? "",
    process: processOf(entry),
    ticket: Number(kept.value.score(entry)),
  }));
}

const QUEUE = ":queue";
const HOLD = /holdfast:client:\S+/;

/** The places in all queues. */
export function entries(run: Run): readonly Entry[] {
  if (!run.inspected) return readEntries(run);
  run.inspected.entries ??= readEntries(run);
  return run.inspected.entries;
}

const readEntries = (run: Run): Entry[] =>
  [...run.server.redis.keys.keys()].flatMap((key) => (key.endsWith(QUEUE) ? entriesOf(run, key) : []));

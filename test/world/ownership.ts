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
const LOCKS = /^holdfast:(?:(?:rw|semaphore):)?\{((?:lock|fair|mixed|rw|frw|sem|fsem):\w)\}$/;
/** format, told, token, since: see lua/handoff. */
const HOLD_AT = 37;
/** A field of lua/counted: format, mode, end, units, token. */
const FIELD = /^1[a-z] (\d{13}) /;

const processOf = (text: string): number => Number(/\bhost(\d+):/.exec(text)?.[1] ?? Number.NaN);

export const nameOf = (key: string): string | null => LOCKS.exec(key)?.[1] ?? null;

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

/** All holds in Redis. */
export const owners = (run: Run): Owned[] =>
  [...run.server.redis.keys.keys()].flatMap((key) => ownersOf(run, key));

/** The entries of all queues, with the numbers of their processes. */
export function entries({ server: { redis } }: Run): { name: string; entry: string; process: number }[] {
  return [...redis.keys.keys()].flatMap((key) => {
    const name = key.endsWith(":queue") ? nameOf(key.slice(0, -":queue".length)) : null;
    const kept = redis.find(key);
    if (name === null || kept?.type !== "zset") return [];
    return kept.value.members.map((entry) => ({ name, entry, process: processOf(entry) }));
  });
}

// Counts the nodes' answers: which hold has the lock, and is that certain yet? The numbers decide,
// so no answer of a minority can give a lock away or report it held.
import { between } from "../util/random.ts";
import type { Holding, Vote } from "./node-commands.ts";

/** The answers so far: of `nodes` nodes, `majority` decide, and `pending` may still answer. */
export interface Tally<A> {
  readonly answers: readonly A[];
  readonly pending: number;
  readonly nodes: number;
  readonly majority: number;
}

export type Granted = Extract<Vote, { is: "owner" }>;

/**
 * `ttl`: ms after which another try is worthwhile. `contended`: no client has a majority. `holder`:
 * all that have a vote.
 */
export type Outcome =
  | { readonly is: "owner"; readonly granted: readonly Granted[] }
  | { readonly is: "held"; readonly ttl: number; readonly contended: boolean; readonly holder: string };

/**
 * The decision of the votes, as soon as it is certain; undefined: not yet. `retryDelay`: the
 * longest pause in ms after a split vote.
 */
export function countVotes(
  { answers, pending, nodes, majority }: Tally<Vote>,
  retryDelay: number,
): Outcome | undefined {
  const granted = answers.filter((vote) => vote.is === "owner");
  if (granted.length >= majority) return { is: "owner", granted };
  const held = answers.filter((vote) => vote.is === "held");
  const free = granted.length + pending;
  // "Held" needs answers of a majority; with fewer the lock is not busy but unavailable.
  if (granted.length + held.length < majority || free >= majority) return undefined;
  const holder = [...new Set(held.map((vote) => vote.holder))].sort().join(" ");
  if (majorityHolder(held, majority) !== null)
    return { is: "held", ttl: firstFree(held, free, majority), contended: false, holder };
  // Another client may hold it by a node that did not answer.
  const contended = majorityHolder(held, majority - (nodes - answers.length)) === null;
  // Each caller comes back after its own random time, so that one of them comes alone.
  return { is: "held", ttl: between(0, retryDelay), contended, holder };
}

/**
 * The holder that a majority has recorded, and how long a majority will have it; null: none;
 * undefined: unknown, as one holder and the nodes that have not answered may be a majority.
 */
export function countHolders({
  answers,
  nodes,
  majority,
}: Tally<Holding>): { holder: string; token: number; ttl: number } | null | undefined {
  const held = answers.flatMap(({ holder, token, ttl }) => (holder === null ? [] : [{ holder, token, ttl }]));
  const holder = majorityHolder(held, majority);
  if (holder !== null) {
    const same = held.filter((one) => one.holder === holder);
    const ttls = same.map(({ ttl }) => ttl).sort((a, b) => b - a);
    return { holder, token: Math.max(...same.map(({ token }) => token)), ttl: ttls[majority - 1] ?? 0 };
  }
  if (answers.length < majority) return undefined;
  return majorityHolder(held, majority - (nodes - answers.length)) === null ? null : undefined;
}

/** The holder that `majority` nodes have recorded; null: none. */
function majorityHolder(held: readonly { readonly holder: string }[], majority: number): string | null {
  const counts = new Map<string, number>();
  for (const { holder } of held) counts.set(holder, (counts.get(holder) ?? 0) + 1);
  for (const [holder, count] of counts) if (count >= majority) return holder;
  return null;
}

/**
 * ms after which a majority may be free at the earliest if nothing is released. `free`: how many
 * nodes may be free now. Infinity: some that are needed have no end, or did not answer.
 */
function firstFree(held: readonly { readonly ttl: number }[], free: number, majority: number): number {
  const ends = held.map(({ ttl }) => ttl).sort((a, b) => a - b);
  return ends[majority - free - 1] ?? Number.POSITIVE_INFINITY;
}

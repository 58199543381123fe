import type { Holding } from "./node-scripts.ts";
import type { Quorum } from "./votes.ts";

interface Held {
  readonly holder: string;
  readonly ttl: number;
}

/** The holder that so many nodes have recorded; null: none. */
export function majorityHolder(held: readonly Held[], majority: number): string | null {
  const counts = new Map<string, number>();
  for (const { holder } of held) counts.set(holder, (counts.get(holder) ?? 0) + 1);
  for (const [holder, count] of counts) if (count >= majority) return holder;
  return null;
}

/**
 * ms after which a majority may be free at the earliest, when nobody releases anything. `free`: so many nodes may be free
 * now. Infinity: some that are needed have no end, or did not answer.
 */
export function firstFree(held: readonly Held[], free: number, majority: number): number {
  const ends = held.map(({ ttl }) => ttl).sort((a, b) => a - b);
  return ends[majority - free - 1] ?? Number.POSITIVE_INFINITY;
}

/**
 * The holder that a majority has recorded, and for how long a majority will have it; null: none. Rejects when that cannot
 * be known: one holder and the nodes that do not answer may be a majority.
 */
export function findHolder(
  quorum: Quorum,
  name: string,
): Promise<{ holder: string; token: number; ttl: number } | null> {
  const { majority } = quorum;
  const asked = quorum.ask<Holding>(name, (node) => node.inspect(name));
  return quorum.count(asked, ({ answers }) => {
    const held = answers.flatMap(({ holder, token, ttl }) =>
      holder === null ? [] : [{ holder, token, ttl }],
    );
    const holder = majorityHolder(held, majority);
    if (holder !== null) {
      const same = held.filter((one) => one.holder === holder);
      const ttls = same.map(({ ttl }) => ttl).sort((a, b) => b - a);
      return { holder, token: Math.max(...same.map(({ token }) => token)), ttl: ttls[majority - 1] ?? 0 };
    }
    if (!quorum.isMajority(answers.length)) return undefined;
    return majorityHolder(held, majority - quorum.unheard(answers)) === null ? null : undefined;
  });
}

import { between } from "../random.ts";

interface Held {
  readonly holder: string;
  readonly ttl: number;
}

/** Who is written down at so many nodes; null: nobody. */
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

/** Nobody has a majority: each comes back after a time of his own, so that one of them comes back alone. */
export function splitDelay(most: number): number {
  return between(0, most);
}

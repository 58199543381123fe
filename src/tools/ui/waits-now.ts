import { waitingProcesses } from "../../inside.ts";
import { LONG_WAIT, type ShownWaits } from "./shown.ts";
import { isWaited, type Seen } from "./survey.ts";
import { type EndedWaits, STEPS } from "./wait-times.ts";

type Now = Pick<ShownWaits, "kind" | "waitingProcesses" | "longest">;

/** The limit for names that the page shows. */
const SHOWN = 100;
const NONE: Now = { kind: "lock", waitingProcesses: 0, longest: null };

/**
 * Waits that have ended, as observed processes reported them, and waits in progress, which Redis
 * has in its queues. `locks`: the longest wait first.
 *
 * The order: first the names with a long wait in progress, the longest first, then those with the
 * most waits and losses.
 */
export function withWaitsNow(ended: readonly EndedWaits[], locks: readonly Seen[]): ShownWaits[] {
  const now = new Map<string, Now>();
  for (const lock of locks.filter(isWaited)) {
    const {
      kind,
      longest,
      waitingProcesses: others,
    } = now.get(lock.name) ?? {
      ...NONE,
      kind: lock.kind,
      longest: lock.longest,
    };
    now.set(lock.name, { kind, longest, waitingProcesses: others + waitingProcesses(lock) });
  }
  const rows: ShownWaits[] = ended.map((one) => ({ ...one, ...(now.get(one.name) ?? NONE) }));
  for (const { name } of ended) now.delete(name);
  for (const [name, one] of now) rows.push({ ...NOTHING_ENDED, name, ...one });
  return rows
    .sort((one, other) => urgency(other) - urgency(one) || weight(other) - weight(one))
    .slice(0, SHOWN);
}

const NOTHING_ENDED = {
  waits: Array.from({ length: STEPS }, () => 0),
  p95: Array.from({ length: STEPS }, () => null),
  losses: 0,
};

const urgency = ({ longest }: ShownWaits): number => ((longest ?? 0) < LONG_WAIT ? 0 : (longest ?? 0));
const weight = ({ waits, losses, waitingProcesses: now }: ShownWaits): number =>
  waits.reduce((sum, count) => sum + count, losses + now);

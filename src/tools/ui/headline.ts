import type { Listed } from "../../index.ts";
import type { Shown, ShownCircle, ShownLock } from "./shown.ts";
import { isLong, isWaited, type Seen } from "./survey.ts";
import type { Restart, Sight } from "./watch.ts";

/** The limit for deadlocks whose locks are named. */
const NAMED = 3;

type Headline = Pick<
  Shown,
  "allAge" | "worst" | "longWaits" | "oldest" | "oldHolds" | "usual" | "restart" | "deadlocked"
>;

/** What the line on top says about all locks: each lock counts once, by its worst problem. */
export function headline(
  { survey, old, restart }: Sight,
  deadlocks: readonly ShownCircle[],
  shown: (lock: Seen) => ShownLock,
): Headline {
  const named = (lock: Pick<Listed, "kind" | "name">): string => `${lock.kind} ${lock.name}`;
  const stuck = new Set(deadlocks.flatMap(({ cycle }) => cycle.map(named)));
  const waited = survey?.locks.filter((lock) => isWaited(lock) && !stuck.has(named(lock))) ?? [];
  const long = waited.filter(isLong);
  const told = new Set([...stuck, ...long.map(named)]);
  const olds = old?.locks.filter((lock) => !told.has(named(lock))) ?? [];
  const [[worst], [oldest]] = [waited, olds];
  const now = performance.now();
  return {
    allAge: survey && !survey.isPartial ? Math.round(now - survey.at) : null,
    worst: worst ? shown(worst) : null,
    longWaits: long.length,
    oldest: oldest ? shown(oldest) : null,
    oldHolds: olds.length,
    usual: oldest ? (old?.usual ?? null) : null,
    restart: restart && shownRestart(restart, now),
    deadlocked: deadlocks.slice(0, NAMED).map(({ cycle }) => cycle.map(({ kind, name }) => ({ kind, name }))),
  };
}

const shownRestart = ({ at, ...restart }: Restart, now: number) => ({
  ...restart,
  ago: Math.round(now - at),
});

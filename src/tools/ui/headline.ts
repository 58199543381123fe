import type { Listed } from "../../index.ts";
import { LONG_WAIT, type Shown, type ShownCircle, type ShownLock } from "./shown.ts";
import { isWaited, longestWait } from "./survey.ts";
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
  shown: (lock: Listed) => ShownLock,
): Headline {
  const named = (lock: Pick<Listed, "kind" | "name">): string => `${lock.kind} ${lock.name}`;
  const stuck = new Set(deadlocks.flatMap(({ cycle }) => cycle.map(named)));
  // The candidates of an election wait for as long as its leader is well.
  const isProblem = (lock: Listed): boolean => lock.kind !== "election" && !stuck.has(named(lock));
  const waited = survey?.locks.filter((lock) => isWaited(lock) && isProblem(lock)) ?? [];
  const long = waited.filter((lock) => (longestWait(lock) ?? 0) >= LONG_WAIT);
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

import { type Way, wander } from "./callers.ts";
import { runJobs } from "./jobs.ts";
import { lead } from "./leaders.ts";
import { shareResults } from "./results.ts";
import type { Run } from "./run.ts";
import { wanderInScopes } from "./scopes.ts";
import { takeSeveral } from "./several.ts";

/** What most callers do. */
const COMMON: readonly Way[] = [...Array<Way>(6).fill(wander), wanderInScopes];
/** What many callers of some runs do, so that they meet. */
const OTHERS: readonly Way[] = [lead, takeSeveral, runJobs, shareResults];

/** The ways of a run's callers: the common ones; in three of five runs also one of the others. */
export const waysOf = ({ dice }: Run): readonly Way[] =>
  dice.chance(0.4) ? COMMON : [...COMMON, ...Array<Way>(6).fill(dice.one(OTHERS))];

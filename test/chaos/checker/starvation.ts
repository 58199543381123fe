import type { LockKind } from "../history/events.ts";
import { calmStretches } from "./calm.ts";
import type { Story } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** ms of calm after which every waiter must have had its turn: a few dozen callers hold the lock for less than a second each. */
const PATIENCE = 15_000;

/** Redis keeps no queue for these: the caller that asks first is first. */
const UNORDERED: readonly LockKind[] = ["redissonLock", "spinLock", "quorumLock", "once"];

/** While nothing is wrong, nobody waits for long. */
export function starvation(story: Story): Violation[] {
  const calm = calmStretches(story).filter(({ from, to }) => to - from > PATIENCE * 1_000);
  return story.calls.flatMap((call) => {
    if (UNORDERED.includes(call.kind)) return [];
    const end = call.answered?.at ?? story.lives.get(call.by)?.dead?.at ?? story.over;
    const waited = calm.map(({ from, to }) => Math.min(end, to) - Math.max(call.asked, from));
    const longest = Math.max(0, ...waited);
    if (longest <= PATIENCE * 1_000) return [];
    const what = `${nameOf(call)} waited ${ms(longest)} for ${call.lock} while nothing was wrong`;
    return [{ rule: "nobody starves", what, at: end, calls: [call] }];
  });
}

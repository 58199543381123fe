import type { LockKind } from "../history/events.ts";
import { calmStretches } from "./calm.ts";
import type { Story } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** ms of calm after which every waiter must have had his turn: there are a few dozen callers, who hold for less than a second. */
const PATIENCE = 15_000;

/** Redis keeps no queue for these: whoever asks first is first. */
const UNORDERED: readonly LockKind[] = ["redissonLock", "spinLock", "quorumLock"];

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

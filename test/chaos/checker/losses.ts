import { calmStretches, GRACE } from "./excuses.ts";
import type { Hold, Story } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** While nothing is wrong, Redis takes no lease before its time. */
export function losses(story: Story): Violation[] {
  const calm = calmStretches(story);
  const isCalm = (hold: Hold, at: number): boolean =>
    calm.some(({ from, to }) => from <= hold.from && at <= to);
  return [...story.holds.values()].flat().flatMap((hold) => {
    const loss = hold.lost ?? ofUnlock(hold);
    if (!loss || !/gone|taken|unknown/.test(loss.reason)) return [];
    if (loss.at > hold.deadline - GRACE.nearDeadline * 1_000 || !isCalm(hold, loss.at)) return [];
    const early = ms(hold.deadline - loss.at);
    const what = `${nameOf(hold.call)} lost ${hold.call.lock} (${loss.reason}) ${early} before its deadline, while nothing was wrong`;
    return [{ rule: "no loss without a reason", what, at: loss.at, calls: [hold.call] }];
  });
}

function ofUnlock({ unlocked }: Hold): { at: number; reason: string } | null {
  return unlocked?.error?.startsWith("LOCK_LOST") ? { at: unlocked.at, reason: unlocked.error } : null;
}

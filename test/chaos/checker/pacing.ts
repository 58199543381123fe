import { Excuses } from "./forgetting.ts";
import { type Hold, type Story, stepsServerClock } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** µs: TTLs are whole ms. */
const GRAIN = 2_000;

/** A hold with `minHold` keeps the lock for so long, whatever becomes of its holder. */
export function pacing(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) => {
    const excuses = new Excuses(story, holds);
    return holds.flatMap((hold, place) => {
      const next = holds[place + 1];
      const { minHold = 0 } = hold.call;
      if (minHold === 0 || !next || excuses.lie(hold, next)) return [];
      const passed = between(story, hold, next);
      if (passed >= minHold * 1_000 - GRAIN) return [];
      const what = `${nameOf(hold.call)} was to keep ${lock} for ${minHold} ms at least, and ${nameOf(next.call)} had it after ${ms(passed)}`;
      return [{ rule: "minHold", what, at: next.from, calls: [hold.call, next.call] }];
    });
  });
}

/**
 * µs from one grant to the next by the server's clock, which tokens are as long as it is not turned back. Behind that, at the
 * most: from when the first could be granted.
 */
function between(story: Story, hold: Hold, next: Hold): number {
  const isTurned = story.troubles.some((trouble) => stepsServerClock(trouble) && trouble.from < next.from);
  return isTurned ? next.from - hold.call.asked : next.token - hold.token;
}

import { Excuses } from "./forgetting.ts";
import type { Hold, Story } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** Never two who count on the same lock at the same time, unless the server forgot the first of them. */
export function exclusion(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) => ofLock(lock, holds, new Excuses(story, holds)));
}

function ofLock(lock: string, holds: readonly Hold[], excuses: Excuses): Violation[] {
  const found: Violation[] = [];
  let inside: Hold[] = [];
  for (const hold of holds) {
    inside = inside.filter((other) => other.until > hold.from);
    if (hold.until <= hold.from) continue; // over before its holder saw it
    for (const other of inside) if (!excuses.lie(other, hold)) found.push(overlap(lock, other, hold));
    inside.push(hold);
  }
  return found;
}

function overlap(lock: string, first: Hold, second: Hold): Violation {
  const both = Math.min(first.until, second.until) - second.from;
  const what = `two holders of ${lock} for ${ms(both)}: ${nameOf(first.call)} with token ${first.token} and ${nameOf(second.call)} with token ${second.token}`;
  return { rule: "one holder", what, at: second.from, calls: [first.call, second.call] };
}

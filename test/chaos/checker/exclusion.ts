import { PASSED } from "../settings.ts";
import { Excuses } from "./forgetting.ts";
import { type InForce, mostPermits, permitsOf } from "./permits.ts";
import type { Hold, Story } from "./story.ts";
import { roomOf, unitsOf } from "./units.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/**
 * Never two who count on the same lock at the same time, unless they share it: readers do, and holders of so many permits as
 * there are; or the server forgot the first of them. Of permits there may be as many as at any moment since the first of those
 * that are there asked for them: what is held is not taken away when the number is lowered.
 */
export function exclusion(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) =>
    ofLock(lock, holds, new Excuses(story, holds), permitsOf(story, lock)),
  );
}

function ofLock(
  lock: string,
  holds: readonly Hold[],
  excuses: Excuses,
  numbers: readonly InForce[],
): Violation[] {
  const found: Violation[] = [];
  let inside: Hold[] = [];
  for (const hold of holds) {
    inside = inside.filter((other) => other.until > hold.from);
    if (hold.until <= hold.from) continue; // over before its holder saw it
    const beside = inside.filter((other) => !excuses.lie(other, hold));
    const { call } = hold;
    if (call.kind === "permit") {
      const used = beside.reduce((sum, other) => sum + unitsOf(other.call), unitsOf(call));
      const first = Math.min(...[hold, ...beside].map((one) => one.call.asked));
      const room = mostPermits(numbers, first - PASSED * 1_000, hold.from);
      if (used > room) found.push(tooMany(lock, used, room, hold, beside));
    } else {
      for (const other of beside)
        if (unitsOf(other.call) + unitsOf(call) > roomOf(call.kind)) found.push(overlap(lock, other, hold));
    }
    inside.push(hold);
  }
  return found;
}

function overlap(lock: string, first: Hold, second: Hold): Violation {
  const both = Math.min(first.until, second.until) - second.from;
  const what = `two holders of ${lock} for ${ms(both)}: ${nameOf(first.call)} with token ${first.token} and ${nameOf(second.call)} with token ${second.token}`;
  return { rule: "one holder", what, at: second.from, calls: [first.call, second.call] };
}

function tooMany(lock: string, used: number, room: number, last: Hold, others: readonly Hold[]): Violation {
  const calls = [...others, last].map(({ call }) => call);
  const names = calls.map((call) => `${nameOf(call)} (${unitsOf(call)})`).join(", ");
  const what = `${used} permits of ${lock} were held, of ${room}: ${names}`;
  return { rule: "enough permits", what, at: last.from, calls };
}

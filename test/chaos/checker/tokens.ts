import { Excuses } from "./forgetting.ts";
import type { Hold, Story } from "./story.ts";
import { nameOf, type Violation } from "./violation.ts";

/**
 * Tokens grow in the order of the holds, passes included. When the server has forgotten its holders they may come in
 * another order, but this stays: a caller that asks after another one had the lock gets a larger token.
 */
export function tokens(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) => {
    if (holds.every(({ token }) => token === 0)) return []; // a lock without tokens
    const excuses = new Excuses(story, holds);
    return [...inOrder(lock, holds, excuses), ...afterAsking(lock, holds, excuses)];
  });
}

function inOrder(lock: string, holds: readonly Hold[], excuses: Excuses): Violation[] {
  const found: Violation[] = [];
  let highest: Hold | undefined;
  for (const hold of holds) {
    if (highest && hold.token <= highest.token && !excuses.lie(highest, hold))
      found.push(fall(lock, highest, hold));
    if (!highest || hold.token > highest.token) highest = hold;
  }
  return found;
}

function afterAsking(lock: string, holds: readonly Hold[], excuses: Excuses): Violation[] {
  const found: Violation[] = [];
  const byQuestion = [...holds].sort((one, other) => one.call.asked - other.call.asked);
  let highest: Hold | undefined;
  let next = 0;
  for (const hold of byQuestion) {
    for (let had = holds[next]; had && had.from < hold.call.asked; had = holds[++next]) {
      if (!highest || had.token > highest.token) highest = had;
    }
    if (!highest || hold.token > highest.token) continue;
    // Without a forgetting, `inOrder` tells it.
    const isLatePass = excuses.isPassed(hold);
    if (excuses.lie(highest, hold) && !isLatePass) found.push(fall(lock, highest, hold));
  }
  return found;
}

function fall(lock: string, before: Hold, after: Hold): Violation {
  const what = `token of ${lock} fell: ${nameOf(before.call)} had ${before.token}, later ${nameOf(after.call)} got ${after.token}`;
  return { rule: "growing tokens", what, at: after.from, calls: [before.call, after.call] };
}

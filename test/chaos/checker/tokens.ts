import { Excuses } from "./forgetting.ts";
import type { Hold, Story } from "./story.ts";
import { nameOf, type Violation } from "./violation.ts";

/**
 * Tokens grow in the order of the holds, passes included. When the server has forgotten its holders they may come in
 * another order, but this stays: a caller that asks after another one had the lock gets a larger token.
 *
 * Readers with no writer between them share one. Holders of permits are there together, and may hear of it in another order,
 * so of these the second rule counts.
 */
export function tokens(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) => {
    if (holds.every(({ token }) => token === 0)) return []; // a lock without tokens
    const [first] = holds;
    if (first?.call.kind === "once") return []; // its token is a time: see `turns`
    const excuses = new Excuses(story, holds);
    const follows = order(holds);
    const isOneByOne = first?.call.kind !== "permit";
    const early = isOneByOne ? inOrder(lock, holds, excuses, follows) : twice(lock, holds, excuses);
    return [...early, ...afterAsking(lock, holds, excuses, follows, isOneByOne)];
  });
}

type Follows = (before: Hold, after: Hold) => boolean;

/** May a hold with this token come behind that one? */
function order(holds: readonly Hold[]): Follows {
  // A writer that became a reader has handed its token on to the readers beside it.
  const handedOn = new Set(holds.flatMap(({ call, token }) => (call.writer === undefined ? [] : [token])));
  return (before, after) => {
    if (after.token !== before.token) return after.token > before.token;
    return after.call.kind === "readLock" && (before.call.kind === "readLock" || handedOn.has(after.token));
  };
}

function inOrder(lock: string, holds: readonly Hold[], excuses: Excuses, follows: Follows): Violation[] {
  const found: Violation[] = [];
  let highest: Hold | undefined;
  for (const hold of holds) {
    // Its process stood still when it was to write that it has the lease, which was over behind that. It had it some time before.
    if (hold.deadline <= hold.from) continue;
    if (highest && !follows(highest, hold) && !excuses.lie(highest, hold))
      found.push(fall(lock, highest, hold));
    if (!highest || hold.token >= highest.token) highest = hold;
  }
  return found;
}

/** Every hold of permits has a token of its own. */
function twice(lock: string, holds: readonly Hold[], excuses: Excuses): Violation[] {
  const known = new Map<number, Hold>();
  return holds.flatMap((hold) => {
    const other = known.get(hold.token);
    known.set(hold.token, hold);
    return other && !excuses.lie(other, hold) ? [fall(lock, other, hold)] : [];
  });
}

function afterAsking(
  lock: string,
  holds: readonly Hold[],
  excuses: Excuses,
  follows: Follows,
  isTold: boolean,
): Violation[] {
  const found: Violation[] = [];
  const byQuestion = [...holds].sort((one, other) => one.call.asked - other.call.asked);
  let highest: Hold | undefined;
  let next = 0;
  for (const hold of byQuestion) {
    for (let had = holds[next]; had && had.from < hold.call.asked; had = holds[++next]) {
      if (!highest || had.token > highest.token) highest = had;
    }
    if (!highest || follows(highest, hold)) continue;
    // Without a forgetting, `inOrder` tells it.
    const isLatePass = excuses.isPassed(hold) || excuses.isOfExchange(hold);
    if ((!isTold || excuses.lie(highest, hold)) && !isLatePass) found.push(fall(lock, highest, hold));
  }
  return found;
}

function fall(lock: string, before: Hold, after: Hold): Violation {
  const what = `token of ${lock} fell: ${nameOf(before.call)} had ${before.token}, later ${nameOf(after.call)} got ${after.token}`;
  return { rule: "growing tokens", what, at: after.from, calls: [before.call, after.call] };
}

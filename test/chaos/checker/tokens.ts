import { allows, handedOn } from "./allows.ts";
import { Forgotten, wasWrittenLate } from "./excuses.ts";
import type { Hold, Story } from "./story.ts";
import { nameOf, type Violation } from "./violation.ts";

/**
 * Tokens grow in the order of the holds, passes included. When the server has forgotten its holders
 * they may come in another order, but this stays: a caller that asks after another one had the lock
 * gets a larger token. Of those that are inside together and may hear of it in another order, only
 * that counts, and that no two have the same one.
 */
export function tokens(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) => {
    const kind = holds[0] && allows(holds[0].call).tokens;
    // `turns` judges times; 0: no tokens
    if (kind === "times" || holds.every(({ token }) => token === 0)) return [];
    const forgotten = new Forgotten(story, holds);
    const follows = order(holds);
    const early = kind === "apart" ? twice(holds, forgotten) : inOrder(holds, forgotten, follows);
    const late = afterAsking(holds, follows).filter(
      // What servers did not forget, `inOrder` tells.
      ([before, after]) => kind === "apart" || forgotten.isBetween(before, after),
    );
    const told = late.filter(([, after]) => !forgotten.isPassed(after) && !forgotten.isOfExchange(after));
    return [...early, ...told].map(([before, after]) => fall(lock, before, after));
  });
}

type Pair = readonly [before: Hold, after: Hold];
type Follows = (before: Hold, after: Hold) => boolean;

/** May a hold with this token come after that one? */
function order(holds: readonly Hold[]): Follows {
  const shared = handedOn(holds);
  const reads = ({ call }: Hold): boolean => allows(call).tokens === "shared";
  return (before, after) => {
    if (after.token !== before.token) return after.token > before.token;
    return reads(after) && (reads(before) || shared.has(after.token));
  };
}

function inOrder(holds: readonly Hold[], forgotten: Forgotten, follows: Follows): Pair[] {
  const found: Pair[] = [];
  let highest: Hold | undefined;
  for (const hold of holds) {
    if (wasWrittenLate(hold)) continue;
    if (highest && !follows(highest, hold) && !forgotten.isBetween(highest, hold))
      found.push([highest, hold]);
    if (!highest || hold.token >= highest.token) highest = hold;
  }
  return found;
}

function twice(holds: readonly Hold[], forgotten: Forgotten): Pair[] {
  const known = new Map<number, Hold>();
  return holds.flatMap((hold) => {
    const other = known.get(hold.token);
    known.set(hold.token, hold);
    return other && !forgotten.isBetween(other, hold) ? [[other, hold] as const] : [];
  });
}

/** Each hold that does not follow the largest token of those that others had before it was asked for. */
function afterAsking(holds: readonly Hold[], follows: Follows): Pair[] {
  const found: Pair[] = [];
  let highest: Hold | undefined;
  let next = 0;
  for (const hold of [...holds].sort((one, other) => one.call.asked - other.call.asked)) {
    for (let had = holds[next]; had && had.from < hold.call.asked; had = holds[++next]) {
      if (!highest || had.token > highest.token) highest = had;
    }
    if (highest && !follows(highest, hold)) found.push([highest, hold]);
  }
  return found;
}

function fall(lock: string, before: Hold, after: Hold): Violation {
  const what = `token of ${lock} fell: ${nameOf(before.call)} had ${before.token}, later ${nameOf(after.call)} got ${after.token}`;
  return { rule: "growing tokens", what, at: after.from, calls: [before.call, after.call] };
}

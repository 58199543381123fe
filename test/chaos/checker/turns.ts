import { LONGEST_LEASE } from "../settings.ts";
import { calmStretches, GRACE, hasFailed, hasLostTurn } from "./excuses.ts";
import type { Call, Hold, Story } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/**
 * What runs once per interval: at most one run begins in each, where the one before has ended well;
 * and while nothing is wrong there is one again, also after a crash.
 */
export function turns(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) =>
    holds[0]?.call.kind === "once"
      ? [...twice(story, lock, holds), ...never(story, lock, holds, holds[0].call.every)]
      : [],
  );
}

function twice(story: Story, lock: string, holds: readonly Hold[]): Violation[] {
  return holds.flatMap((hold, place) => {
    const next = holds[place + 1];
    if (!next || hasFailed(hold) || isLater(hold, next)) return [];
    if (hasLostTurn(story, { from: hold.call.asked, to: next.from })) return [];
    const what = `${lock} ran twice in one interval: ${nameOf(hold.call)} began at ${hold.token}, and ${nameOf(next.call)} at ${next.token}`;
    return [{ rule: "once per interval", what, at: next.from, calls: [hold.call, next.call] }];
  });
}

function isLater({ call: { every = 0, aligned }, token }: Hold, next: Hold): boolean {
  if (!aligned) return next.token - token >= every;
  return Math.floor(next.token / every) > Math.floor(token / every);
}

function never(story: Story, lock: string, holds: readonly Hold[], every = 0): Violation[] {
  const calm = calmStretches(story);
  const patience = (every + LONGEST_LEASE + GRACE.nextRun) * 1_000;
  const isIdle = ({ asked, lock: name, answered }: Call): boolean =>
    name === lock &&
    answered?.with === "busy" &&
    calm.some(({ from, to }) => from <= asked - patience && asked <= to) &&
    !holds.some(({ from, until }) => from <= answered.at && until >= asked - patience);
  const call = story.calls.find(isIdle);
  if (!call) return [];
  const what = `${nameOf(call)} did not run ${lock}, which nobody had run for ${ms(patience)} while nothing was wrong`;
  return [{ rule: "turns come again", what, at: call.asked, calls: [call] }];
}

import { LONGEST_LEASE } from "../settings.ts";
import { calmStretches } from "./calm.ts";
import { type Call, type Hold, type Story, stepsServerClock, type Trouble } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** ms after which a turn must have come back, besides its interval and the lease of a run that failed. */
const SLACK = 3_000;

/**
 * What runs once per interval: at most one run begins in each, where the one before has ended well; and while nothing is wrong
 * there is one again, also behind a crash.
 */
export function turns(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) =>
    holds[0]?.call.kind === "once" ? [...twice(story, lock, holds), ...never(story, lock, holds)] : [],
  );
}

function twice(story: Story, lock: string, holds: readonly Hold[]): Violation[] {
  return holds.flatMap((hold, place) => {
    const next = holds[place + 1];
    if (!next || hasFailed(hold) || wasForgotten(story, hold, next)) return [];
    if (isLater(hold, next)) return [];
    const what = `${lock} ran twice in one interval: ${nameOf(hold.call)} began at ${hold.token}, and ${nameOf(next.call)} at ${next.token}`;
    return [{ rule: "once per interval", what, at: next.from, calls: [hold.call, next.call] }];
  });
}

/** A run that throws, crashes or is lost leaves its turn to another one. */
const hasFailed = ({ unlocked, lost }: Hold): boolean =>
  !unlocked || unlocked.error !== null || lost !== null;

function isLater({ call: { every = 0, aligned }, token }: Hold, next: Hold): boolean {
  if (!aligned) return next.token - token >= every;
  return Math.floor(next.token / every) > Math.floor(token / every);
}

/** Has the server lost what it knew of the first, or the time? */
function wasForgotten({ forgettings, troubles }: Story, hold: Hold, next: Hold): boolean {
  const isWithin = (from: number, to: number): boolean => from <= next.from && to >= hold.call.asked;
  // A clock of another rate comes back from a crash some ms earlier than it was.
  const isOfTime = (one: Trouble): boolean =>
    stepsServerClock(one) || one.kind.startsWith("crash and restart");
  return (
    forgettings.some(({ since, at }) => isWithin(since, at)) ||
    troubles.some((one) => isOfTime(one) && isWithin(one.from, one.to))
  );
}

function never(story: Story, lock: string, holds: readonly Hold[]): Violation[] {
  const calm = calmStretches(story);
  const [
    {
      call: { every = 0 },
    } = { call: {} as Call },
  ] = holds;
  const patience = (every + LONGEST_LEASE + SLACK) * 1_000;
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

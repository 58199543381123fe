import { LONGEST_LEASE } from "../settings.ts";
import { allows, taken, unitsOf } from "./allows.ts";
import { calmStretches, disturbs, GRACE, stoodStill } from "./excuses.ts";
import type { Call, Span, Story } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

const NEVER = Number.POSITIVE_INFINITY;

/** Every call ends, and in time; so does every unlock. A caller that was killed need not answer any more. */
export function endings(story: Story): Violation[] {
  return story.calls.flatMap((call) => [...waiting(call, story), ...unlocking(call, story)]);
}

function waiting(call: Call, story: Story): Violation[] {
  const { wait, asked, aborted, answered } = call;
  const life = story.lives.get(call.by);
  const end = Math.min(answered?.at ?? NEVER, life?.dead?.at ?? story.over);
  const grace = GRACE.ending * 1_000;
  const byWait = wait === null ? NEVER : asked + Math.max(wait, GRACE.firstReply) * 1_000 + grace;
  const byAbort = aborted === null ? NEVER : aborted + grace;
  if (end - Math.min(byWait, byAbort) - stoodStill(life, asked, end) > 0) {
    const what = `${nameOf(call)} was to wait ${wait} ms for ${call.lock}${aborted === null ? "" : ", was aborted,"} and had no answer after ${ms(end - asked)}`;
    return [{ rule: "answers in time", what, at: end, calls: [call] }];
  }
  if (answered || life?.dead) return [];
  const what = `${nameOf(call)} never had an answer for ${call.lock}, ${ms(story.over - asked)} after it had asked`;
  return [{ rule: "every call ends", what, at: story.over, calls: [call] }];
}

function unlocking(call: Call, story: Story): Violation[] {
  const { unlock = null, unlocked } = call.hold ?? {};
  if (unlock === null) return [];
  const life = story.lives.get(call.by);
  const end = Math.min(unlocked?.at ?? NEVER, life?.dead?.at ?? story.over);
  const took = end - unlock - stoodStill(life, unlock, end);
  if (took <= (GRACE.unlock + GRACE.ending) * 1_000 && (unlocked || life?.dead)) return [];
  const what = `${nameOf(call)} began to unlock ${call.lock} and had no answer after ${ms(end - unlock)}`;
  return [{ rule: "every unlock ends", what, at: end, calls: [call] }];
}

/** While nothing is wrong, no caller that Redis has in a queue waits for long. */
export function starvation(story: Story): Violation[] {
  const calm = calmStretches(story).filter(({ from, to }) => to - from > GRACE.turn * 1_000);
  return story.calls.flatMap((call) => {
    if (!allows(call).isQueued) return [];
    const end = call.answered?.at ?? story.lives.get(call.by)?.dead?.at ?? story.over;
    const longest = Math.max(
      0,
      ...calm.map(({ from, to }) => Math.min(end, to) - Math.max(call.asked, from)),
    );
    if (longest <= GRACE.turn * 1_000) return [];
    const what = `${nameOf(call)} waited ${ms(longest)} for ${call.lock} while nothing was wrong`;
    return [{ rule: "nobody starves", what, at: end, calls: [call] }];
  });
}

/** A time in which so many units are taken, or wanted. */
interface Use extends Span {
  readonly units: number;
}

/** While nothing is wrong but that processes die, what fits beside those before it is given at once. */
export function serving(story: Story): Violation[] {
  const prompt = story.calls.filter((call) => allows(call).isPrompt);
  const wrong = story.troubles
    .filter(disturbs)
    .map(({ from, to }) => ({ from, to: to + GRACE.settled * 1_000, units: NEVER }));
  return prompt.flatMap((call) => {
    const end = endOf(call, story);
    const chance = { from: call.asked, to: end, units: allows(call).units - taken(call) };
    // Most callers waited while something was wrong: they need no look at all others.
    if (longestRoom(chance, wrong) <= GRACE.fits * 1_000) return [];
    const others = prompt.filter((other) => other !== call && other.lock === call.lock && other.asked < end);
    const uses = others.flatMap((other) => usedBy(other, call, story));
    const all = [...wrong, ...unreached(call, story), ...lowered(call, story), ...uses];
    const longest = longestRoom(chance, all);
    if (longest <= GRACE.fits * 1_000) return [];
    const what = `${nameOf(call)} waited ${ms(longest)} for ${call.lock}, which had room for it`;
    return [{ rule: "what fits is given", what, at: end, calls: [call] }];
  });
}

/** When it had not to wait any more. */
const endOf = ({ by, answered, aborted }: Call, { lives, over }: Story): number =>
  Math.min(answered?.at ?? over, aborted ?? over, lives.get(by)?.dead?.at ?? over);

/**
 * While its process may not reach Redis: before its first answer, for a time in which it connects on
 * a busy machine too, and while another of its calls waited that was refused.
 */
function unreached({ by }: Call, { calls }: Story): Use[] {
  const own = calls.filter((other) => other.by === by);
  const answers = own.flatMap(({ answered }) => (answered && answered.with !== "error" ? answered.at : []));
  const refused = own.flatMap(({ asked, answered }) =>
    answered?.with === "error" ? { from: asked, to: answered.at, units: NEVER } : [],
  );
  const begun = Math.min(...own.map(({ asked }) => asked));
  return [
    { from: begun, to: Math.min(begun + GRACE.connecting * 1_000, ...answers), units: NEVER },
    ...refused,
  ];
}

/** When there may have been fewer units than by the code. */
function lowered(call: Call, story: Story): Use[] {
  const { units: most } = allows(call);
  return unitsOf(story, call).flatMap(({ units, from, to }) =>
    units < most ? { from, to: to + GRACE.soon * 1_000, units: most - units } : [],
  );
}

/** When another call has, or may have, what this one wants; or is before it. */
function usedBy(other: Call, call: Call, { lives, over }: Story): Use[] {
  const { hold, answered, asked } = other;
  const soon = GRACE.soon * 1_000;
  const from = asked < call.asked + soon ? asked : hold?.from;
  if (from === undefined) return [];
  const units = taken(other);
  const lease = (other.lease ?? LONGEST_LEASE) * 1_000;
  const dead = lives.get(other.by)?.dead?.at;
  const gone = dead === undefined ? undefined : dead + lease + GRACE.lastWords * 1_000;
  if (!hold) return [{ from, to: answered ? answered.at + soon : (gone ?? over), units }];
  const { unlocked, deadline } = hold;
  if (unlocked?.error === null) return [{ from, to: unlocked.at, units }];
  return [{ from, to: gone ?? Math.max(deadline, unlocked?.at ?? over) + lease + soon, units }];
}

/** The longest time, in µs, for which all these leave so many units. */
function longestRoom({ from, to, units }: Use, all: readonly Use[]): number {
  const uses = all.filter((one) => one.to > from && one.from < to);
  const times = [from, ...uses.flatMap((one) => [one.from, one.to]), to]
    .filter((time) => time >= from && time <= to)
    .sort((one, other) => one - other);
  let longest = 0;
  let since: number | null = null;
  for (const [place, at] of times.entries()) {
    const used = uses.reduce((sum, one) => (one.from <= at && one.to > at ? sum + one.units : sum), 0);
    since = used <= units ? (since ?? at) : null;
    if (since !== null) longest = Math.max(longest, (times[place + 1] ?? at) - since);
  }
  return longest;
}

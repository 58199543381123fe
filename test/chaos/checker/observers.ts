import { LONGEST_WINDOW, TERM_LEASE } from "../settings.ts";
import { type Shown, type Story, stepsServerClock, stoodStill } from "./story.ts";
import { ms, type Violation } from "./violation.ts";

/** ms that the last answer of Redis counts at the most, and for a busy machine. */
const COUNTS = Math.max(TERM_LEASE, LONGEST_WINDOW) + 1_500;
/** ms in which what a server has forgotten, or its clock, may still be in an answer. */
const NEAR = 10_000;

/** Observers of an election are shown terms, and what is proclaimed in them, in order, and nobody long behind the end of its term. */
export function observers(story: Story): Violation[] {
  return [...inOrder(story), ...inTime(story)];
}

function inOrder(story: Story): Violation[] {
  const last = new Map<string, Shown>();
  return story.shown.flatMap((one) => {
    const key = `${one.by} ${one.lock}`;
    const before = last.get(key);
    last.set(key, one);
    if (!before || before.token < one.token) return [];
    if (before.token === one.token && before.number <= one.number) return [];
    if (isExcused(story, before.from, one.from)) return [];
    const what = `an observer in worker ${one.by} was shown proclamation ${before.number} of term ${before.token} of ${one.lock}, and later ${one.number} of ${one.token}`;
    return [{ rule: "leaders in order", what, at: one.from, calls: [] }];
  });
}

function inTime(story: Story): Violation[] {
  return story.shown.flatMap((one) => {
    if (one.to - one.from <= COUNTS * 1_000) return [];
    const ended = endOfTerm(story, one);
    const from = Math.max(ended, one.from);
    const late = one.to - from - stoodStill(story.lives.get(one.by), from, one.to);
    if (late <= COUNTS * 1_000 || isExcused(story, one.from, one.to)) return [];
    const what = `an observer in worker ${one.by} was shown the leader of ${one.lock} with token ${one.token} for ${ms(late)} behind the end of its term`;
    return [{ rule: "leaders in time", what, at: one.to, calls: [] }];
  });
}

/** When the term was surely over in Redis: its resignation was confirmed, or somebody had a later one. */
function endOfTerm({ holds }: Story, { lock, token }: Shown): number {
  const ends = (holds.get(lock) ?? []).map((hold) => {
    if (hold.token > token) return hold.from;
    const isResigned = hold.token === token && hold.unlocked?.error === null;
    return (isResigned && hold.unlocked?.at) || Number.POSITIVE_INFINITY;
  });
  return Math.min(Number.POSITIVE_INFINITY, ...ends);
}

/** A server that has forgotten says what was true before; one whose clock was turned keeps terms for longer. */
function isExcused({ forgettings, troubles }: Story, from: number, to: number): boolean {
  const isNear = (begin: number, end: number): boolean => begin <= to && end + NEAR * 1_000 >= from;
  return (
    forgettings.some(({ since, at }) => isNear(since, at)) ||
    troubles.some((trouble) => stepsServerClock(trouble) && isNear(trouble.from, trouble.to))
  );
}

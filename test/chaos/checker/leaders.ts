import { Forgotten, GRACE, hasOldAnswers, stoodStill } from "./excuses.ts";
import { callKey, type Hold, type Shown, type Story } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** The signal of a holder tells a loss; a leader's body ends then, and comes again only after that. */
export function bodies(story: Story): Violation[] {
  const holds = [...story.holds.values()].flat();
  return [...untold(story, holds), ...atOnce(holds), ...ofTwoTerms(story)];
}

/** A holder has looked and seen that it holds no more: by then, or soon, its signal has said so. */
function untold(story: Story, holds: readonly Hold[]): Violation[] {
  return holds.flatMap((hold) => {
    const { call, unheld, lost } = hold;
    if (!call.listens || unheld === null) return [];
    const told = Math.min(lost?.at ?? Number.POSITIVE_INFINITY, endOfBody(hold, story));
    const late = told - unheld - stoodStill(story.lives.get(call.by), unheld, told);
    if (late <= GRACE.signal * 1_000) return [];
    const what = `${nameOf(call)} held ${call.lock} no more, and its signal did not say so within ${ms(late)}`;
    return [{ rule: "signals tell losses", what, at: told, calls: [call] }];
  });
}

/** One that leads again and again never runs two bodies at once. */
function atOnce(holds: readonly Hold[]): Violation[] {
  const byCall = new Map(holds.map((hold) => [callKey(hold.call.by, hold.call.number), hold]));
  return holds.flatMap((hold) => {
    const before = hold.call.again ? byCall.get(callKey(hold.call.by, hold.call.again)) : undefined;
    if (!before || (before.unlock !== null && before.unlock <= hold.from)) return [];
    const what = `${nameOf(hold.call)} began to lead ${hold.call.lock} while ${nameOf(before.call)} was still inside`;
    return [{ rule: "one body", what, at: hold.from, calls: [before.call, hold.call] }];
  });
}

/** A body runs beside that of a later term no longer than until its loss is told. */
function ofTwoTerms(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) => {
    if (!holds.some(({ call }) => call.again !== undefined)) return [];
    const forgotten = new Forgotten(story, holds);
    return holds.flatMap((hold, place) => {
      const { call, token } = hold;
      if (call.again === undefined || !call.listens) return [];
      const next = holds.slice(place + 1).find((other) => other.token > token);
      if (!next) return [];
      const end = Math.min(endOfBody(hold, story), endOfBody(next, story));
      const both = end - next.from - stoodStill(story.lives.get(call.by), next.from, end);
      if (both <= (GRACE.unknowing + GRACE.signal) * 1_000 || forgotten.isBetween(hold, next)) return [];
      const what = `two leaders of ${lock} for ${ms(both)}: ${nameOf(call)} with token ${token} and ${nameOf(next.call)} with token ${next.token}`;
      return [{ rule: "one leader", what, at: end, calls: [call, next.call] }];
    });
  });
}

const endOfBody = ({ call, unlock }: Hold, { lives, over }: Story): number =>
  Math.min(unlock ?? over, lives.get(call.by)?.dead?.at ?? over);

/** Observers are shown terms and their proclamations in order, and no term long after its end. */
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
    if (hasOldAnswers(story, { from: before.from, to: one.from })) return [];
    const what = `an observer in worker ${one.by} was shown proclamation ${before.number} of term ${before.token} of ${one.lock}, and later ${one.number} of ${one.token}`;
    return [{ rule: "leaders in order", what, at: one.from, calls: [] }];
  });
}

function inTime(story: Story): Violation[] {
  const most = GRACE.shown * 1_000;
  return story.shown.flatMap((one) => {
    if (one.to - one.from <= most) return [];
    const from = Math.max(endOfTerm(story, one), one.from);
    const late = one.to - from - stoodStill(story.lives.get(one.by), from, one.to);
    if (late <= most || hasOldAnswers(story, one)) return [];
    const what = `an observer in worker ${one.by} was shown the leader of ${one.lock} with token ${one.token} for ${ms(late)} after the end of its term`;
    return [{ rule: "leaders in time", what, at: one.to, calls: [] }];
  });
}

/**
 * When the term was surely over in Redis: its resignation was confirmed, or another caller had a
 * later one.
 */
function endOfTerm({ holds }: Story, { lock, token }: Shown): number {
  const ends = (holds.get(lock) ?? []).map((hold) => {
    if (hold.token > token) return hold.from;
    const isResigned = hold.token === token && hold.unlocked?.error === null;
    return (isResigned && hold.unlocked?.at) || Number.POSITIVE_INFINITY;
  });
  return Math.min(Number.POSITIVE_INFINITY, ...ends);
}

import { TERM_LEASE } from "../settings.ts";
import { Excuses } from "./forgetting.ts";
import { callKey, type Hold, type Story, stoodStill } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** ms from a loss to its signal, and to the end of the body that listens to it, on a busy machine. */
const SLACK = 1_000;
/** ms for which a leader may not know that it is none any more: where the key was lost, it learns that by a renewal. */
const UNKNOWING = TERM_LEASE / 3;

/** The signal of a holder tells a loss; a leader's body ends then, and comes again only behind that. */
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
    if (late <= SLACK * 1_000) return [];
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
    const excuses = new Excuses(story, holds);
    return holds.flatMap((hold, place) => {
      const { call, token } = hold;
      if (call.again === undefined || !call.listens) return [];
      const next = holds.slice(place + 1).find((other) => other.token > token);
      if (!next) return [];
      const end = Math.min(endOfBody(hold, story), endOfBody(next, story));
      const both = end - next.from - stoodStill(story.lives.get(call.by), next.from, end);
      if (both <= (UNKNOWING + SLACK) * 1_000 || excuses.lie(hold, next)) return [];
      const what = `two leaders of ${lock} for ${ms(both)}: ${nameOf(call)} with token ${token} and ${nameOf(next.call)} with token ${next.token}`;
      return [{ rule: "one leader", what, at: end, calls: [call, next.call] }];
    });
  });
}

const endOfBody = ({ call, unlock }: Hold, { lives, over }: Story): number =>
  Math.min(unlock ?? over, lives.get(call.by)?.dead?.at ?? over);

import { type Call, type Story, stoodStill } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** ms that the client's first command may take although the caller would not wait so long. */
const FIRST_REPLY = 500;
/** ms on top of every bound: a claim, a busy machine. */
const SLACK = 4_000;
/** ms for an unlock: the reply timeout of the workers' clients. */
const REPLY_TIMEOUT = 5_000;

/** Every call ends, and in time; so does every unlock. A caller that was killed need not answer any more. */
export function endings(story: Story): Violation[] {
  return story.calls.flatMap((call) => [...waiting(call, story), ...unlocking(call, story)]);
}

function waiting(call: Call, story: Story): Violation[] {
  const life = story.lives.get(call.by);
  const end = Math.min(call.answered?.at ?? Number.POSITIVE_INFINITY, life?.dead?.at ?? story.over);
  const bounds = [call.wait === null ? Number.POSITIVE_INFINITY : call.asked + limit(call.wait)];
  if (call.aborted !== null) bounds.push(call.aborted + SLACK * 1_000);
  const late = end - Math.min(...bounds) - stoodStill(life, call.asked, end);
  if (late > 0) {
    const what = `${nameOf(call)} was to wait ${call.wait} ms for ${call.lock}${call.aborted === null ? "" : ", was aborted,"} and had no answer after ${ms(end - call.asked)}`;
    return [{ rule: "answers in time", what, at: end, calls: [call] }];
  }
  if (call.answered || life?.dead) return [];
  const what = `${nameOf(call)} never had an answer for ${call.lock}, ${ms(story.over - call.asked)} after it had asked`;
  return [{ rule: "every call ends", what, at: story.over, calls: [call] }];
}

function unlocking(call: Call, story: Story): Violation[] {
  const { unlock, unlocked } = call.hold ?? {};
  if (unlock === null || unlock === undefined) return [];
  const life = story.lives.get(call.by);
  const end = Math.min(unlocked?.at ?? Number.POSITIVE_INFINITY, life?.dead?.at ?? story.over);
  const took = end - unlock - stoodStill(life, unlock, end);
  if (took <= (REPLY_TIMEOUT + SLACK) * 1_000 && (unlocked || life?.dead)) return [];
  const what = `${nameOf(call)} began to unlock ${call.lock} and had no answer after ${ms(end - unlock)}`;
  return [{ rule: "every unlock ends", what, at: end, calls: [call] }];
}

const limit = (wait: number): number => (Math.max(wait, FIRST_REPLY) + SLACK) * 1_000;

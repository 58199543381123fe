import { LONGEST_LEASE, LONGEST_WINDOW, TERM_LEASE } from "../settings.ts";
import { allows } from "./allows.ts";
import type { Forgetting, Hold, Life, Span, Story, Trouble } from "./story.ts";

// All that the rules forgive, and why: first the times, in ms, then what else may have happened.

export const GRACE = {
  /** "answers in time": a client's first command may take so long although its caller would not wait so long. */
  firstReply: 500,
  /** "answers in time", "every unlock ends": on top of every bound, for a claim and a busy machine. */
  ending: 4_000,
  /** "every unlock ends": the longest reply timeout of the workers' clients. */
  unlock: 5_000,
  /** "nobody starves": calm in which every waiter has its turn. Dozens of callers hold the lock for less than a second each. */
  turn: 15_000,
  /** "no loss without a reason": so near to its deadline a lease may be over when a late command arrives. */
  nearDeadline: 500,
  /** "once per interval": besides the interval and the lease of a run that failed, until the turn comes again. */
  nextRun: 3_000,
  /** "what fits is given": so long it may wait: less than until its own next re-check, which would find it in any case. */
  fits: 900,
  /**
   * "what fits is given": for a command whose answer no caller waits for. So far apart, callers may also come to the queue in
   * another order than they asked in.
   */
  soon: 500,
  /** "what fits is given": in which a process connects after its first call, also on a busy machine. */
  connecting: 1_500,
  /** "what fits is given": in which Redis executes what a process sent before it died. */
  lastWords: 100,
  /** "leaders in time": the last answer of Redis counts so long at most; and for a busy machine. */
  shown: Math.max(TERM_LEASE, LONGEST_WINDOW) + 1_500,
  /** "leaders in order", "leaders in time": what a server has forgotten, or its clock, may still be in an answer. */
  oldAnswer: 10_000,
  /** "signals tell losses", "one leader": from a loss to its signal, and to the end of the body, on a busy machine. */
  signal: 1_000,
  /** "one leader": a leader whose key was lost learns that by its next renewal. */
  unknowing: TERM_LEASE / 3,
  /** "one holder", "growing tokens": a process asks whether it has the lock when it has not heard so for 100 ms; and for a busy machine. */
  lastPass: 100 + 400,
  /** Every rule that needs calm: until the effects of a fault are over, such as the hold of a dead process, a window, a re-check. */
  settled: 7_000,
} as const;

/** µs. "monotonic register": times are whole, so claims that share less prove nothing. */
export const GRAIN = 1;

/** Does one of these last until this stretch, and `after` ms, and begin before its end? Times are µs. */
const meets = (all: readonly Span[], { from, to }: Span, after = 0): boolean =>
  all.some((one) => one.from <= to && one.to + after * 1_000 >= from);

/**
 * "monotonic register", "linearizable": what a server forgot it may give to others, until the last lease that it forgot is over.
 * Those rules know no tokens by which the holds before and after could be told apart.
 */
export const mayBeForgotten = ({ forgettings }: Story, span: Span): boolean =>
  meets(forgettings, span, LONGEST_LEASE);

/** "once per interval": the server has lost what it knew of the first run, or the time. */
export const hasLostTurn = ({ forgettings, troubles }: Story, span: Span): boolean =>
  // A clock of another rate comes back from a crash some ms earlier than it was.
  meets(
    [
      ...forgettings,
      ...troubles.filter((one) => stepsClock(one) || one.kind.startsWith("crash and restart")),
    ],
    span,
  );

/** "leaders in order", "leaders in time": a server that has forgotten says what was true before; one whose clock was turned keeps terms for longer. */
export const hasOldAnswers = ({ forgettings, troubles }: Story, span: Span): boolean =>
  meets([...forgettings, ...troubles.filter(stepsClock)], span, GRACE.oldAnswer);

/** Was a server's clock stepped? That of a worker is the worker's own. */
const stepsClock = ({ kind }: Trouble): boolean => kind.includes("clock") && !kind.includes("worker");

/** Every rule with a time: a worker's moments in which it could do nothing, between two times, in µs. */
export function stoodStill(life: Life | undefined, from: number, to: number): number {
  let sum = 0;
  for (const one of life?.standing ?? []) sum += Math.max(0, Math.min(one.to, to) - Math.max(one.from, from));
  return sum;
}

/** "nobody starves", "no loss without a reason", "turns come again" count only in these stretches, in which nothing was wrong, nor had been shortly before. */
export function calmStretches({ troubles, calls, over }: Story): Span[] {
  const restless = [...troubles].sort((one, other) => one.from - other.from);
  const calm = [];
  let from = calls[0]?.asked ?? over;
  for (const trouble of restless) {
    if (trouble.from > from) calm.push({ from, to: trouble.from });
    from = Math.max(from, trouble.to + GRACE.settled * 1_000);
  }
  if (over > from) calm.push({ from, to: over });
  return calm;
}

/** "one holder", "enough permits", "linearizable": the hold was over before its holder saw it. */
export const wasOver = ({ from, until }: Hold): boolean => until <= from;

/**
 * "one holder", "enough permits", "growing tokens", "one leader": what a server forgot cannot exclude, so a hold from before and one
 * from after may overlap. Which of both a hold is, its times tell where they can; else its token does, which is the server's µs at
 * the grant. Some locks have no tokens.
 */
export class Forgotten {
  readonly #story: Story;
  /** Holds that were passed on inside a process: granted earlier than they were asked for, perhaps. */
  readonly #passed: ReadonlySet<Hold>;

  constructor(story: Story, holds: readonly Hold[]) {
    this.#story = story;
    this.#passed = passed(holds);
  }

  /** "growing tokens": it was passed on inside its process, so it is of an earlier grant. */
  isPassed(hold: Hold): boolean {
    return this.#passed.has(hold);
  }

  /**
   * "growing tokens": a reader may have the token of a phase that began while servers were exchanged. Its first reader may be a
   * command whose caller has given up, and the old server may give others newer tokens meanwhile.
   */
  isOfExchange({ call, token }: Hold): boolean {
    const { forgettings } = this.#story;
    return (
      allows(call).tokens === "shared" &&
      forgettings.some(({ tokens: { from, to } }) => token >= from && token <= to)
    );
  }

  /** Were these two granted on both sides of a forgetting? */
  isBetween(one: Hold, other: Hold): boolean {
    return this.#story.forgettings.some(
      (forgetting) =>
        (this.#mayBeBefore(one, forgetting) && this.#mayBeAfter(other, forgetting)) ||
        (this.#mayBeBefore(other, forgetting) && this.#mayBeAfter(one, forgetting)),
    );
  }

  /** Was it granted before the forgetting was over? */
  #mayBeBefore(hold: Hold, { to: at, tokens }: Forgetting): boolean {
    // What was granted before is passed on inside a process no longer than this.
    if (hold.token === 0) return hold.from < at + LONGEST_LEASE * 1_000;
    const { asked, by } = hold.call;
    if (asked > at && !this.#passed.has(hold)) return false;
    const still = stoodStill(this.#story.lives.get(by), at, hold.from);
    if (asked > at && hold.from > at + still + GRACE.lastPass * 1_000) return false;
    return grantedAt(hold) <= tokens.to;
  }

  /** Was it granted after the forgetting began? */
  #mayBeAfter(hold: Hold, { from: since, tokens }: Forgetting): boolean {
    // A reader has the token of those that it finds, also when that is all that a server remembers.
    const hasTime = hold.token !== 0 && allows(hold.call).tokens !== "shared";
    return hold.from > since && (!hasTime || grantedAt(hold) >= tokens.from);
  }
}

/** The server's µs at the grant, by the token. Of a time in ms, any µs of that one counts. */
const grantedAt = ({ call, token }: Hold): number =>
  allows(call).tokens === "times" ? token * 1_000 + 999 : token;

/**
 * A pass has the token after that of its process's hold before it; a reader that comes to others, in this process or in another
 * one, has theirs.
 */
function passed(holds: readonly Hold[]): Set<Hold> {
  const known = new Set<string>();
  return new Set(
    holds.filter(({ call, token }) => {
      const isShared = allows(call).tokens === "shared";
      const isJoined = isShared && known.has(`reads ${token}`);
      known.add(`${call.by} ${token}`);
      if (isShared) known.add(`reads ${token}`);
      return isJoined || known.has(`${call.by} ${token - 1}`);
    }),
  );
}

import { LONGEST_LEASE, LONGEST_WINDOW, TERM_LEASE } from "../settings.ts";
import { allows } from "./allows.ts";
import {
  type Call,
  callKey,
  type Forgetting,
  type Hold,
  type Life,
  type Span,
  type Story,
  type Trouble,
} from "./story.ts";

// What counts as no violation. Nothing else is forgiven; what a kind of lock allows stands in
// `allows.ts`.
//
// rule                       forgiven                           because
// one holder, enough permits `Forgotten.isBetween`              a server forgot one of the two
//                            `wasOver`                          it had no time in which to count on it
//                            a number of permits since the      what is held is not taken away when the
//                            first of them asked                number is lowered
// monotonic register,        `mayBeForgotten`                   they have no tokens to tell the holds
// linearizable                                                  before and after apart
// monotonic register         `GRAIN`                            times are whole µs
// linearizable               `wasOver`                          as above
// growing tokens             `Forgotten.isBetween`, `isPassed`, their grants were earlier than they say
//                            `isOfExchange`, `wasWrittenLate`
// answers in time,           `GRACE.firstReply`, `ending`,      first commands, claims, busy machines
// every unlock ends          `unlock`; `stoodStill`; death      a process that stands still, or is dead
// every call ends            death                              it need not answer any more
// nobody starves             all but `calmStretches`            a fault delays everybody
// no loss without a reason   all but calm, `GRACE.nearDeadline` a late command finds the lease over
// living processes           a death that is meant              the director killed it
// once per interval          `hasFailed`, `hasLostTurn`         the turn is open again
// turns come again           all but calm, `GRACE.nextRun`      the lease of a crashed run must end first
// no run beside a result     `hasLostResult`                    a server forgot it, or a caller had it
//                                                               forgotten
// no older result, results   `hasOldResult`                     a server forgot the newer one; it stored
// are stored once                                               the same one again
// results end                `hasLostTurn`                      as above
// both of `keep`             `GRACE.rate`, `GRACE.keep`         clocks run at other rates
// what fits is given         `disturbs`, and in `waiting.ts`    other calls may have what it wants, or its
//                            `unreached`, `lowered`, `usedBy`   process may not reach Redis
// leaders in order, in time  `hasOldAnswers`, `GRACE.shown`,    Redis may say what was true before
//                            `stoodStill`
// signals tell losses,       `GRACE.signal`, `unknowing`,       a loss is learned by a renewal
// one leader                 `stoodStill`, `isBetween`

/** ms. */
export const GRACE = {
  /** A client's first command may take so long although its caller would not wait so long. */
  firstReply: 500,
  /** On top of every bound, for a claim and a busy machine. */
  ending: 4_000,
  /** The longest reply timeout of the workers' clients. */
  unlock: 5_000,
  /** Calm in which every waiter has its turn: dozens of callers hold a lock for less than 1 s each. */
  turn: 15_000,
  /** So near to its deadline a lease may be over when a late command arrives. */
  nearDeadline: 500,
  /** Until a turn comes again, besides its interval and the lease of a run that failed. */
  nextRun: 3_000,
  /** What fits may wait: less than until its own next re-check, which would find it in any case. */
  fits: 900,
  /**
   * For a command whose answer no caller waits for. So far apart, callers may also come to the
   * queue in another order than they asked in.
   */
  soon: 500,
  /** In which a process connects after its first call, also on a busy machine. */
  connecting: 1_500,
  /** In which Redis executes what a process sent before it died. */
  lastWords: 100,
  /** The last answer of Redis counts so long at most; and for a busy machine. */
  shown: Math.max(TERM_LEASE, LONGEST_WINDOW) + 1_500,
  /** What a server has forgotten, or its clock, may still be in an answer. */
  oldAnswer: 10_000,
  /** The part by which clocks may run at other rates; ms for what is rounded on the way. */
  rate: 0.01,
  keep: 20,
  /** A result stays so long for those that have waited for it. */
  waiter: 15_000,
  /** From a loss to its signal, and to the end of the body that listens to it, on a busy machine. */
  signal: 1_000,
  /** A leader whose key was lost learns that by its next renewal. */
  unknowing: TERM_LEASE / 3,
  /**
   * After a loss, in which a turn may still begin in a hold from before: a process asks whether it
   * has the lock when it has not heard so for 100 ms. The rest is for a busy machine.
   */
  lastPass: 100 + 400,
  /** Until the effects of a fault are over: the hold of a dead process, a window, a re-check. */
  settled: 7_000,
} as const;

/** µs: claims that share less prove nothing. */
export const GRAIN = 1;

/** Does one of these last until this stretch, and `after` ms, and begin before its end? Times are µs. */
const meets = (all: readonly Span[], { from, to }: Span, after = 0): boolean =>
  all.some((one) => one.from <= to && one.to + after * 1_000 >= from);

/** What a server forgot it may give to others, until the last lease that it forgot is over. */
export const mayBeForgotten = ({ forgettings }: Story, span: Span): boolean =>
  meets(forgettings, span, LONGEST_LEASE);

/** A server that has forgotten says what was true before; a clock that was turned keeps terms. */
export const hasOldAnswers = ({ forgettings, troubles }: Story, span: Span): boolean =>
  meets([...forgettings, ...troubles.filter(stepsClock)], span, GRACE.oldAnswer);

/** What a server has forgotten, it may still have said shortly after that. */
export const hasOldResult = ({ forgettings }: Story, span: Span): boolean =>
  meets(forgettings, span, GRACE.oldAnswer);

/** Has the server lost a result, or was it told to forget it? */
export function hasLostResult({ forgettings, forgets, troubles }: Story, lock: string, span: Span): boolean {
  // The network may hold a command up, or copy it, until that is healed.
  const executed = ({ from, to }: Span): Span => ({
    from,
    to: Math.max(to, ...troubles.filter((one) => meets([one], { from, to })).map((one) => one.to)),
  });
  const told = forgets.filter((one) => one.lock === lock).map(executed);
  return meets(told, span, GRACE.lastWords) || meets([...forgettings, ...troubles.filter(stepsClock)], span);
}

/** Has the server lost what it knew of a run, or the time? */
export function hasLostTurn({ forgettings, troubles }: Story, span: Span): boolean {
  // A clock of another rate comes back from a crash some ms earlier than it was.
  const losesTime = (one: Trouble): boolean => stepsClock(one) || one.kind.startsWith("crash and restart");
  return meets([...forgettings, ...troubles.filter(losesTime)], span);
}

/** A run that throws, crashes or is lost leaves its turn to another one. */
export const hasFailed = ({ unlocked, lost }: Hold): boolean =>
  !unlocked || unlocked.error !== null || lost !== null;

/** Was a server's clock stepped? That of a worker is the worker's own. */
const stepsClock = ({ kind }: Trouble): boolean => kind.includes("clock") && !kind.includes("worker");

/** What a kill does is known: for how long the holds of the worker may live. */
export const disturbs = ({ kind }: Trouble): boolean => !kind.startsWith("kill");

/** The hold was over before its holder saw it. */
export const wasOver = ({ from, until }: Hold): boolean => until <= from;

/**
 * Its process stood still when it was to write that it has the lease, which was over after that.
 * It had the lease some time before.
 */
export const wasWrittenLate = ({ from, deadline }: Hold): boolean => deadline <= from;

/** The moments of a worker in which it could do nothing, between two times, in µs. */
export function stoodStill(life: Life | undefined, from: number, to: number): number {
  let sum = 0;
  for (const one of life?.standing ?? []) sum += Math.max(0, Math.min(one.to, to) - Math.max(one.from, from));
  return sum;
}

/** In which nothing was wrong, nor had been shortly before. */
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

/**
 * What a server forgot cannot exclude, so a hold from before and one from after may overlap. Which
 * of both a hold is, its times tell where they can; else its token does, which is the server's µs
 * at the grant. Some locks have no tokens.
 */
export class Forgotten {
  readonly #story: Story;
  /** Holds that were passed on inside a process: granted earlier than they were asked for, perhaps. */
  readonly #passed: ReadonlySet<Hold>;
  /** By the call of each. */
  readonly #holds: ReadonlyMap<string, Hold>;

  constructor(story: Story, holds: readonly Hold[]) {
    this.#story = story;
    this.#passed = passed(holds, story.calls);
    this.#holds = new Map(holds.map((hold) => [callKey(hold.call.by, hold.call.number), hold]));
  }

  /** So it may be of an earlier grant than it was asked for. */
  isPassed(hold: Hold): boolean {
    return this.#passed.has(hold);
  }

  /**
   * Has a reader the token of a phase that began while servers were exchanged? Its first reader may
   * be a command whose caller has given up, and the old server may give others newer tokens.
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
  #mayBeBefore(hold: Hold, forgetting: Forgetting): boolean {
    const { to: at, tokens } = forgetting;
    // What was granted before is passed on inside a process no longer than this.
    if (hold.token === 0) return hold.from < at + LONGEST_LEASE * 1_000;
    const { asked, by, writer } = hold.call;
    // A reader that a writer goes on as has what the writer was granted.
    const origin = writer === undefined ? undefined : this.#holds.get(callKey(by, writer));
    if (origin) return this.#mayBeBefore(origin, forgetting);
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
 * A pass has the token after that of its process's hold before it; a reader that comes to others, in
 * this process or in another one, has theirs; a writer that goes on as a reader keeps its own. A call
 * for several locks that got none may have had this one, and have given it back at its end.
 */
function passed(holds: readonly Hold[], calls: readonly Call[]): Set<Hold> {
  const known = new Set<string>();
  const unseen = calls.filter(({ kind, hold }) => kind === "multiLock" && hold === null);
  const isFromUnseen = ({ call, from }: Hold): boolean =>
    unseen.some(
      ({ by, lock, asked, answered }) =>
        by === call.by && lock === call.lock && asked < from && (answered?.at ?? from) >= call.asked,
    );
  return new Set(
    holds.filter((hold) => {
      const { call, token } = hold;
      const isShared = allows(call).tokens === "shared";
      const isJoined = isShared && (call.writer !== undefined || known.has(`reads ${token}`));
      known.add(`${call.by} ${token}`);
      if (isShared) known.add(`reads ${token}`);
      return isJoined || known.has(`${call.by} ${token - 1}`) || isFromUnseen(hold);
    }),
  );
}

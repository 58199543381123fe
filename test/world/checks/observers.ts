import type { Check, Member, Run } from "../run.ts";

/** In ms: a run is inspected this often. */
const INSPECTED = 100;
/** In ms: from a change until observers show it, when nothing is in the way. */
const SHOWN = 150;
/** In ms: observers try again this long after Redis has failed, and a little more. */
const TRIED_AGAIN = 2_700;
/** In ms: the message of an end may be lost with the connection of the leader, and a little more. */
const LOST_MESSAGE = 12_700;
/** In ms: a timer is late by this at most. */
const TIMER_LATE = 5;

/** In ms: so long before the end of the longest term an observer may show that none leads. */
const EARLY = 310;

/** What Redis has of an election. */
interface State {
  /** 0: none leads. */
  readonly token: number;
  /** Null: it has proclaimed nothing yet. */
  readonly value: string | null;
  readonly until: number;
}

const NONE: State = { token: 0, value: null, until: Number.NEGATIVE_INFINITY };

function stateOf({ server: { redis } }: Run, name: string): State {
  const key = `holdfast:election:{${name}}`;
  const lock = redis.find(key);
  const said = redis.find(`${key}:leader`);
  if (lock?.type !== "string") return NONE;
  const token = Number(lock.value.slice(3, 19));
  const [, of, value = null] = (said?.type === "string" && /^1 (\d+) \d+ \S+ (.*)$/.exec(said.value)) || [];
  return { token, value: Number(of) === token ? value : null, until: lock.until };
}

/** What observers of elections see. */
export const observers = (run: Run): Check => {
  const states = new Map<string, State & { readonly since: number }>();
  /** By token: until when Redis has had the term, by its own clock. */
  const ends = new Map<number, number>();
  const trouble = new Map<Member, number>();
  const read = (name: string): State & { readonly since: number } => {
    const state = stateOf(run, name);
    if (state.token > 0) ends.set(state.token, state.until);
    const last = states.get(name);
    const isSame = last?.token === state.token && last.value === state.value;
    const since = isSame ? last.since : run.time.now;
    states.set(name, { ...state, since });
    return { ...state, since };
  };
  const isAwake = ({ process }: Member): boolean =>
    process.busyUntil <= run.time.now && process.pausedUntil < run.time.now - INSPECTED;
  return {
    promise:
      "Observers are notified of each change by a message, and show a leader at most until its term would end.",
    ran(_, { keys }) {
      for (const key of keys) {
        const name = /^holdfast:election:\{(election:\w)\}$/.exec(key)?.[1];
        if (name) read(name);
      }
    },
    inspect() {
      const { now } = run.time;
      const { redis } = run.server;
      for (const member of run.members) if (!run.isWell(member)) trouble.set(member, now);
      for (const observing of run.observers) {
        const { member, name, shown } = observing;
        if (member.process.isDead || run.isClosing(member) || !isAwake(member)) continue;
        const state = read(name);
        const who = `${member.process.name} observes ${name}, and sees`;
        const token = shown?.token ?? 0;
        const end = ends.get(token) ?? Number.POSITIVE_INFINITY;
        if (token > 0 && redis.ms - end > TIMER_LATE)
          run.fail(`${who} a leader ${(redis.ms - end).toFixed(0)} ms after the end of its term`);
        const isRight =
          state.value === null ? shown === null : token === state.token && shown?.value === state.value;
        // It counts the term by its own clock, which may be a little fast.
        const isEarly = shown === null && state.until - redis.ms < EARLY;
        if (isRight || (isEarly && run.hasFaults)) continue;
        const last = Math.max(trouble.get(member) ?? 0, member.network.lostAt);
        const since = Math.max(state.since, observing.since, last);
        // The next owner sends a message when it proclaims its value, if it lives until then.
        const most = !run.hasFaults ? SHOWN : state.value === null ? LOST_MESSAGE : TRIED_AGAIN;
        if (now - since > most + run.slack)
          run.fail(
            `${who} ${shown ? `${shown.value} (token ${token})` : String(shown)} for ` +
              `${(now - since).toFixed(0)} ms, and Redis has ${state.value} (token ${state.token})`,
          );
      }
    },
  };
};

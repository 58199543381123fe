import { codeOf } from "../callers.ts";
import { refusalOf } from "../jobs.ts";
import type { Ran } from "../network.ts";
import { type Job, jobOf, type TurnLease } from "../once.ts";
import type { Check, Holding, Member, Request, Run } from "../run.ts";
import { EPOCH } from "../simulated-process.ts";

/** In ms: what no caller waits for is withdrawn within this time, when its process can reach Redis. */
const WITHDRAWN = 4_000;
/** In ms: a script that took longer to Redis than this may be a copy of one that was given up. */
const IN_TIME = 200;
/** In ms: a query waits this long for its answer at most, and a little more for two clocks. */
const STALE = 5_200;
/** In ms: the grain of a key's end. */
const GRAIN = 1;

const KEY = /^holdfast:once:\{(once:\w+)\}$/;
/** A running turn names its hold; one that is done does not. */
const VALUE = /^1(?:r (\d{16}) (.+)|d (\d{16}))$/;

/** A turn of a job that has begun in Redis. */
interface Turn {
  readonly name: string;
  readonly hold: string;
  readonly member: Member;
  /** When it began, in µs of the server's time, and in ms of the run. */
  readonly begin: number;
  readonly at: number;
  /** By how much the server's clock was set back then. */
  readonly back: number;
  /** Did it begin by a command that its caller may have given up? */
  readonly isLate: boolean;
  /** "over": its lease has ended before it was done. */
  state: "runs" | "done" | "withdrawn" | "over";
  /** In ms of the run: since when it has not been running. */
  until: number;
  /** The end of its key, in ms of the server's time. */
  expires: number;
  body: Holding | null;
  hasThrown: boolean;
  isLost: boolean;
}

/** What `runOnce` promises. It follows each job's key, script by script. */
export const intervals = (run: Run): Check => {
  /** By name, in the order in which they began. */
  const turns = new Map<string, Turn[]>();
  const byHold = new Map<string, Turn>();
  const trouble = new Map<Member, number>();

  const lastOf = (name: string): Turn | undefined => turns.get(name)?.at(-1);
  const isSetBack = ({ back }: Turn): boolean => run.server.back !== back;
  const leaseOf = ({ name, member }: Turn): number => jobOf(name).lease ?? member.leaseTime;
  const who = ({ name, member, begin }: Turn): string =>
    `the turn of ${name} that began at ${shown(begin)} ms for ${member.process.name}`;

  const stop = (turn: Turn, state: Turn["state"]): void => {
    turn.state = state;
    turn.until = run.time.now;
  };

  /** Why may another turn begin in the same interval? null: it may not. */
  const isExcused = (turn: Turn): boolean => {
    const { member, at, hasThrown, isLost, state } = turn;
    if (state === "done" || jobOf(turn.name).onCrash === "keep") return false;
    if (hasThrown || run.isClosing(member)) return true;
    return run.hasFaults && (isLost || member.process.isDead || member.troubleUntil >= at);
  };

  /** `turn` has begun after `last`. */
  const checkOrder = (last: Turn, turn: Turn): void => {
    if (last.state === "withdrawn" || isSetBack(last)) return;
    const passed = (turn.begin - last.begin) / 1_000;
    if (intervalOf(jobOf(turn.name), last.begin, turn.begin) === 0 && !isExcused(last))
      run.fail(`${who(turn)} began ${passed.toFixed(3)} ms after ${who(last)}, in the same interval`);
    if (last.state !== "done" && passed < leaseOf(last) - GRAIN)
      run.fail(
        `${who(turn)} began ${passed.toFixed(3)} ms after ${who(last)}, which was not done, and whose lease ` +
          `is ${leaseOf(last)} ms`,
      );
  };

  const begins = (member: Member, name: string, hold: string, begin: number, ran: Ran): Turn => {
    const { age, isFirst, isCopy, script } = ran;
    const turn: Turn = {
      ...{ name, hold, member, begin, at: run.time.now, back: run.server.back },
      ...{ isLate: isCopy || age > IN_TIME, state: "runs", until: Number.POSITIVE_INFINITY, expires: 0 },
      ...{ body: null, hasThrown: false, isLost: false },
    };
    if (script !== "once/begin") run.fail(`${script} begins ${who(turn)}`);
    const last = lastOf(name);
    if (last) checkOrder(last, turn);
    const before = byHold.get(hold);
    // A turn that was withdrawn or lost leaves no mark, and its copy may come within the interval.
    if (before?.state === "done" && !isFirst && !isSetBack(before))
      run.fail(
        `a copy, sent ${age.toFixed(0)} ms ago, begins ${who(turn)}: its hold has ended ${who(before)}`,
      );
    if (!isFirst && age > STALE + run.server.back)
      run.fail(`${who(turn)} begins by a command that was sent ${age.toFixed(0)} ms ago`);
    byHold.set(hold, turn);
    turns.set(name, [...(turns.get(name) ?? []), turn]);
    return turn;
  };

  /** The turn of this body: of its process, with the beginning that the body is told. */
  const turnOf = ({ name, member, lease }: Holding): Turn | undefined => {
    const { begin } = lease as unknown as TurnLease;
    return turns
      .get(name)
      ?.findLast((turn) => turn.member === member && Math.floor(turn.begin / 1_000) === begin);
  };

  /** Those of which a script may have told this call. */
  const lastDuring = ({ name, since }: Request): Turn[] => {
    const all = turns.get(name) ?? [];
    return all.filter((_, i) => (all[i + 1]?.at ?? Number.POSITIVE_INFINITY) >= since);
  };

  return {
    promise:
      "At most one run begins in `every` ms, by the clock of the Redis server, and at most one is under way; " +
      "a body that has not returned runs again after its lease.",
    ran(member, ran) {
      const { redis } = run.server;
      for (const key of ran.keys) {
        const name = KEY.exec(key)?.[1];
        if (name === undefined) continue;
        const last = lastOf(name);
        if (last?.state === "runs" && last.expires < redis.ms) stop(last, "over");
        const kept = redis.find(key);
        if (kept?.type !== "string") {
          if (last?.state !== "runs") continue;
          const isWithdrawn = ran.script === "once/leave";
          stop(last, isWithdrawn ? "withdrawn" : "done");
          if (isWithdrawn && last.body)
            run.fail(`${ran.script} of ${member.process.name} withdraws ${who(last)}, whose body runs`);
          continue;
        }
        const [, begin, hold, done] = VALUE.exec(kept.value) ?? [];
        if (begin !== undefined && hold !== undefined) {
          const isKnown = last?.state === "runs" && last.hold === hold && last.begin === Number(begin);
          const turn = isKnown ? last : begins(member, name, hold, Number(begin), ran);
          turn.expires = kept.until;
        } else if (done === undefined) run.fail(`${ran.script} writes ${kept.value} into ${key}`);
        else if (last?.state === "runs") {
          if (Number(done) !== last.begin)
            run.fail(
              `${ran.script} ends ${who(last)}, and writes that it began at ${shown(Number(done))} ms`,
            );
          stop(last, "done");
        }
      }
    },
    entered(holding) {
      if (holding.kindName !== "once") return;
      const turn = turnOf(holding);
      const { name, member } = holding;
      if (!turn)
        return run.fail(`${member.process.name} runs the body of ${name}, and Redis began no turn for it`);
      if (turn.body) run.fail(`${who(turn)} runs two bodies`);
      if (turn.state === "withdrawn") run.fail(`${who(turn)} was withdrawn, and its body runs`);
      turn.body = holding;
    },
    leaving(holding) {
      if (holding.kindName !== "once") return;
      const turn = turnOf(holding);
      if (turn && (holding.lease as unknown as TurnLease).throws) turn.hasThrown = true;
    },
    left(holding, error) {
      const turn = holding.kindName === "once" ? turnOf(holding) : undefined;
      if (!turn) return;
      if (codeOf(error) === "LOCK_LOST") turn.isLost = true;
      if (run.hasFaults || error !== null) return;
      const job = jobOf(turn.name);
      if (turn.hasThrown && job.onCrash === "again") return;
      const isOver = intervalOf(job, turn.begin, run.server.redis.micros) > 0;
      if (turn.state !== "done" && !isOver)
        run.fail(`the call of ${who(turn)} has ended, and Redis has no mark that it is done`);
    },
    refused(request) {
      const told = refusalOf(request);
      if (!told) return;
      const { name, member, since } = request;
      const { running, remaining } = told;
      const what = `${member.process.name} may not run ${name} (${running ? "it runs" : "it was done"}, ${remaining} ms)`;
      if (!Number.isInteger(remaining) || remaining < 0) run.fail(`${what}: that is no time`);
      const candidates = lastDuring(request);
      // A step of the server's clock makes intervals longer, and the ends of keys later.
      if (candidates.some(isSetBack)) return;
      const [from, until] = [since, run.time.now].map((ms) => EPOCH + ms - run.server.back) as [
        number,
        number,
      ];
      const isRight = candidates.some((turn) => {
        const job = jobOf(name);
        if (running) {
          const longest = Math.max(leaseOf(turn), job.onCrash === "keep" ? job.every : 0);
          return turn.until >= since && turn.expires >= from - GRAIN && remaining <= longest;
        }
        // Redis has answered at this time, if it told of this turn.
        const at = endOf(job, turn.begin) - remaining;
        return turn.state === "done" && at >= from - GRAIN && at <= until + GRAIN;
      });
      if (!isRight)
        run.fail(
          `${what}, and since its call no turn of it ran or was in its interval: ` +
            (candidates.map((turn) => `${who(turn)} (${turn.state})`).join(", ") || "none began"),
        );
    },
    inspect() {
      const { now } = run.time;
      for (const member of run.members) if (!run.isWell(member)) trouble.set(member, now);
      for (const all of turns.values()) {
        const turn = all.at(-1) as Turn;
        const { member, at, isLate, state, body, expires } = turn;
        if (state !== "runs" || body || isLate || expires < run.server.redis.ms) continue;
        if (member.process.isDead || run.isClosing(member) || !run.isWell(member)) continue;
        const waits = now - Math.max(at, trouble.get(member) ?? 0, member.network.lostAt);
        if (waits > (run.hasFaults ? WITHDRAWN : 0) + run.slack)
          run.fail(
            `${who(turn)}, which is well, runs no body after ${waits.toFixed(0)} ms, and is not withdrawn`,
          );
      }
    },
  };
};

/** How many intervals later another time is, in µs of the server's time. */
function intervalOf({ every, aligned }: Job, begin: number, at: number): number {
  const length = every * 1_000;
  return aligned ? Math.floor(at / length) - Math.floor(begin / length) : Math.floor((at - begin) / length);
}

/** The end of the interval of a turn that began then, in ms of the server's time. */
function endOf({ every, aligned }: Job, begin: number): number {
  const ms = begin / 1_000;
  return aligned ? (Math.floor(ms / every) + 1) * every : ms + every;
}

/** A time of the server, as the story counts. */
const shown = (micros: number): string => (micros / 1_000 - EPOCH).toFixed(3);

import { type RunLease, servedBy } from "../results.ts";
import type { Check, Holding, Member, Run } from "../run.ts";

const KEY = /^holdfast:remember:\{(remember:\w)\}:result$/;
/** format and state, token, at, owner, keep, fingerprint, JSON: see lua/remember/result.lua. */
const VALUE = /^1v (\d{16}) (\d{16}) (\d{16}) (\d+) - (.*)$/;
/** In ms: the grain of a key's end. */
const GRAIN = 2;

/** A result that a run has stored. */
interface Stored {
  readonly token: number;
  /** When, in ms of the run; in ms of the server's time; and by how much its clock was set back then. */
  readonly at: number;
  readonly stated: number;
  readonly back: number;
  readonly keep: number;
  /** Did another run have the lock, or none? */
  readonly isLate: boolean;
  /** The end of its key, in ms of the server's time. */
  expires: number;
  /** In ms of the run: when a script found that it was removed, replaced or over. */
  endedAt: number;
}

/** What `remember` promises beside one body at a time. It follows each result's key, script by script. */
export const results = (run: Run): Check => {
  /** By name, in the order in which they were stored. */
  const stored = new Map<string, Stored[]>();
  /** What bodies return, by name and token. */
  const values = new Map<string, string>();
  const listOf = (name: string): Stored[] => stored.get(name) ?? [];
  const who = ({ name, member }: { readonly name: string; readonly member: Member }): string =>
    `${member.process.name}, ${name}`;
  const runOf = (holding: Holding): RunLease | null =>
    holding.kindName === "remember" ? (holding.lease as unknown as RunLease) : null;

  const changed = (name: string, script: string, text: string | null, expires: number): void => {
    const all = listOf(name);
    const last = all.at(-1);
    const [, token = "", at = "", owner = "", keep = "", json = ""] = (text && VALUE.exec(text)) || [];
    if (last && last.token === Number(token)) {
      if (expires > last.expires)
        run.fail(`${script} makes the result of ${name}, token ${token}, last longer`);
      last.expires = expires;
      return;
    }
    if (last) last.endedAt = Math.min(last.endedAt, run.time.now);
    if (text === null) return;
    if (!token) run.fail(`${script} writes ${text} as the result of ${name}`);
    if (last && last.token > Number(token))
      run.fail(`${script} stores the result of ${name} with token ${token} after that with ${last.token}`);
    if (all.some((one) => one.token === Number(token)))
      run.fail(`${script} stores the result of ${name} with token ${token} a second time`);
    if (JSON.stringify(values.get(`${name} ${Number(token)}`)) !== json)
      run.fail(`${script} stores ${json} as the result of ${name} with token ${token}`);
    const { time, server } = run;
    const one = { token: Number(token), at: time.now, stated: Math.floor(Number(at) / 1_000), expires };
    const isLate = Number(owner) > 0;
    const rest = { back: server.back, keep: Number(keep), isLate, endedAt: Number.POSITIVE_INFINITY };
    stored.set(name, [...all, { ...one, ...rest }]);
  };

  return {
    promise:
      "One body runs, and all that waited for it, or came within `keep` ms, get its value; a newer result " +
      "replaces an older one, never the reverse.",
    ran(_, { script, keys }) {
      for (const key of keys) {
        const name = KEY.exec(key)?.[1];
        const kept = name && run.server.redis.find(key);
        if (name)
          changed(name, script, kept && kept.type === "string" ? kept.value : null, kept ? kept.until : 0);
      }
    },
    entered(holding) {
      const own = runOf(holding);
      if (!own) return;
      const { name, since } = holding;
      values.set(`${name} ${own.token}`, own.value);
      if (!own.held || run.forced.mayBelieve(holding)) return;
      const { now } = run.time;
      for (const { token, at, keep, isLate, endedAt } of listOf(name)) {
        // The hold may be from before a late result, or have ended before a late copy took it once more.
        if (isLate) continue;
        if (endedAt === Number.POSITIVE_INFINITY && now < at + keep - GRAIN)
          run.fail(
            `${who(holding)}: runs with token ${own.token}, and the result of ${token} is for new callers`,
          );
        if (!run.hasFaults && at > since + run.slack)
          run.fail(`${who(holding)}: runs with token ${own.token}, and has waited for the run ${token}`);
      }
    },
    left(holding, error) {
      const own = runOf(holding);
      if (!own?.told || error !== null) return;
      const { told, token, value } = own;
      if (!told.ran || told.token !== token || told.value !== value)
        run.fail(
          `${who(holding)}: its body returned ${value} with token ${token}, and ${JSON.stringify(told)}`,
        );
      const one = listOf(holding.name).find((other) => other.token === token);
      if (told.at === 0 ? !run.hasFaults : told.at !== one?.stated)
        run.fail(`${who(holding)}: its result is from ${told.at}, and Redis has stored it at ${one?.stated}`);
    },
    refused(request) {
      const told = servedBy(request);
      if (!told) return;
      const { name, since } = request;
      const { token, value, at, ran } = told;
      const what = `${who(request)}: gets the result of ${token}`;
      if (ran || values.get(`${name} ${token}`) !== value) run.fail(`${what}, ${value}`);
      const one = listOf(name).find((other) => other.token === token);
      if (!one || one.stated !== at)
        return run.fail(`${what} from ${at}, which is not what Redis has stored`);
      if (one.endedAt < since) run.fail(`${what}, which was removed or replaced before its call`);
      const { now } = run.time;
      // A clock that is set back lengthens it.
      const rest = one.at + one.keep + (run.server.back - one.back) - since;
      if (since > one.at && rest < -GRAIN)
        run.fail(`${what} ${-rest.toFixed(0)} ms after its time for new callers`);
      if (!run.hasFaults && now - Math.max(since, one.at) > run.slack)
        run.fail(`${what} ${(now - Math.max(since, one.at)).toFixed(0)} ms after it could have it`);
    },
  };
};

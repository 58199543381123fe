import { entries, nameOf, owners } from "../ownership.ts";
import type { Check, Member, Run } from "../run.ts";

/** In ms: a grant that its process does not use is given back after it, or ends by itself. */
const UNUSED = 9_000;
/** The longest that a re-sent command arrives late, in ms. */
const LATE_COPY = 5_200;
const GRANT_WINDOW = 3_000;

/** What Redis keeps: see the format in docs/protocol.md. */
export const keys = (run: Run): Check => {
  const unused = new Map<string, number>();
  const orphans = new Map<string, number>();
  const memberOf = (process: number): Member | undefined =>
    [...run.members].find((member) => member.process.number === process);
  const concerns = (member: Member, name: string): boolean =>
    run.inside(name).some((one) => one.member === member) ||
    run.waiting(name).some((one) => one.member === member);

  return {
    promise: "A hold lasts no longer than was asked for, and none stays that no caller has, wants or caches.",
    granted({ key, hold, script, age, isGhost }) {
      if (isGhost && key.startsWith("holdfast:{") && age > LATE_COPY + run.server.back)
        run.fail(
          `${key} belongs again to a hold that had ended, by ${script}, sent ${age.toFixed(0)} ms ago: ${hold}`,
        );
    },
    inspect() {
      const { now } = run.time;
      const { redis } = run.server;
      const back = Math.max(0, run.server.back);
      for (const key of [...redis.keys.keys()]) {
        const kept = redis.find(key);
        const isData = nameOf(key) !== null || /:(queue|clients)$/.test(key);
        if (kept && isData && kept.until === Number.POSITIVE_INFINITY) run.fail(`${key} has no end`);
      }
      const present = new Set<string>();
      for (const owned of owners(run)) {
        const { key, name, hold, process, until } = owned;
        const member = memberOf(process);
        const longest = Math.max(GRANT_WINDOW, run.started[process]?.leaseTime ?? 0) + 5;
        if (until - redis.ms > longest + back && key.startsWith("holdfast:{"))
          run.fail(`${key} lasts for ${until - redis.ms} ms, and at most ${longest} ms were asked for`);
        if (!member || concerns(member, name) || member.process.pausedUntil > now - UNUSED) continue;
        if (!run.isWell(member)) continue;
        present.add(`${key} ${hold}`);
        const since = unused.get(`${key} ${hold}`) ?? now;
        unused.set(`${key} ${hold}`, since);
        const isWell = member.troubleUntil < since;
        const most = run.grants.isPassed(owned) && isWell ? 1_500 : UNUSED;
        if (now - since > most && !run.grants.of(owned)?.isGhost && member.longestStay === 0)
          run.fail(
            `${key} has belonged for ${(now - since).toFixed(0)} ms to ${member.process.name}, ` +
              `in which no caller has it or wants it: ${hold}`,
          );
      }
      for (const id of unused.keys()) if (!present.has(id)) unused.delete(id);

      if (run.hasFaults) return;
      for (const { name, entry, process } of entries(run)) {
        const member = memberOf(process);
        const isWanted = member !== undefined && run.waiting(name).some((one) => one.member === member);
        if (isWanted) orphans.delete(entry);
        else if (!orphans.has(entry)) orphans.set(entry, now);
        else if (now - (orphans.get(entry) ?? now) > 500)
          run.fail(
            `${name}: its queue has an entry of process ${process}, in which no caller waits: ${entry}`,
          );
      }
    },
    closed() {
      if (run.hasFaults) return;
      const left = owners(run).map(({ key, hold }) => `${key} (${hold})`);
      if (left.length > 0) run.fail(`holds are left after close(): ${left.join(", ")}`);
      const waiting = entries(run).map(({ name, entry }) => `${name} (${entry})`);
      if (waiting.length > 0) run.fail(`entries are left after close(): ${waiting.join(", ")}`);
    },
  };
};

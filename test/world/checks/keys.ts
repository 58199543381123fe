import { channelOf, entries, HANDOFF, nameOf, type Owned, owners } from "../ownership.ts";
import type { Check, Member, Run } from "../run.ts";

/** In ms: what its process does not use is given back after it, or ends by itself. */
const UNUSED = 9_000;
/** The same, when it came in time and its process can reach Redis: a failed withdrawal is repeated. */
const UNUSED_WELL = 4_000;
/** A grant by another one's release, of which its process gets a message. */
const UNUSED_TOLD = 700;
/** In ms: a waiter re-checks within 1.9 s, and that recalls what nobody has. */
const RECALLED = 2_600;
/** A script that took longer to Redis than this may be a copy of one that was given up. */
const IN_TIME = 200;
/** The longest that a re-sent command arrives late, in ms. */
const LATE_COPY = 5_200;
const GRANT_WINDOW = 3_000;

/** What Redis keeps: see the format in docs/protocol.md. */
export const keys = (run: Run): Check => {
  const unused = new Map<string, number>();
  const orphans = new Map<string, number>();
  const trouble = new Map<Member, number>();
  const told = new Set<string>();
  const isInside = (member: Member, name: string): boolean =>
    run.inside(name).some((one) => one.member === member) ||
    run.wanting(name).some((one) => one.member === member && one.together) ||
    (run.isDirected && run.waiting(name).some((one) => one.member === member));

  /** What a late copy took is given back when another process waits, if its process gets messages. */
  const recalled = ({ key, name, hold }: Owned, member: Member, since: number): void => {
    const { now } = run.time;
    const kept = run.server.redis.find(key);
    const isToldOfWaiters = kept?.type === "string" && /^1[12]/.test(kept.value);
    const isAsked = run.waiting(name).some((one) => {
      const { wait, since: came, member: other } = one;
      return wait !== null && other !== member && Math.max(came, trouble.get(other) ?? 0) < now - RECALLED;
    });
    if (isToldOfWaiters && isAsked && now - since > RECALLED && member.network.receives(channelOf(hold)))
      run.fail(
        `a late copy has taken ${key} for ${member.process.name}, which has not given it back in ` +
          `${(now - since).toFixed(0)} ms, although another process waits: ${hold}`,
      );
  };

  return {
    promise: "A hold lasts no longer than was asked for, and none stays that no caller uses or caches.",
    granted(grant) {
      const { key, hold, script, age, isFirst, isGhost, process } = grant;
      const receives = run.memberOf(process)?.network.receives(channelOf(hold));
      if (run.grants.isByPassing(grant) && receives) told.add(`${key} ${hold}`);
      else told.delete(`${key} ${hold}`);
      if (isGhost && !isFirst && HANDOFF.test(key) && age > LATE_COPY + run.server.back)
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
        const isData = nameOf(key) !== null || /:(queue|clients|result|last)$/.test(key);
        if (kept && isData && kept.until === Number.POSITIVE_INFINITY) run.fail(`${key} has no end`);
      }
      for (const member of run.members) if (!run.isWell(member)) trouble.set(member, now);
      const present = new Set<string>();
      for (const owned of owners(run)) {
        const { key, name, hold, process, until } = owned;
        const member = run.memberOf(process);
        const longest = Math.max(GRANT_WINDOW, run.started[process]?.leaseTime ?? 0) + 5;
        if (until - redis.ms > longest + back && HANDOFF.test(key))
          run.fail(`${key} lasts for ${until - redis.ms} ms, and at most ${longest} ms were asked for`);
        // What Redis did not confirm to a client that closes ends by itself: see the check of close().
        if (!member || run.isClosing(member)) continue;
        if (isInside(member, name) || member.process.pausedUntil > now - UNUSED) continue;
        if (!run.isWell(member)) continue;
        present.add(`${key} ${hold}`);
        const began = unused.get(`${key} ${hold}`) ?? now;
        unused.set(`${key} ${hold}`, began);
        const grant = run.grants.of(owned);
        const since = Math.max(began, trouble.get(member) ?? 0);
        const isTold = told.has(`${key} ${hold}`) && !(member.network.lostAt > (grant?.at ?? now));
        const isInTime = grant && grant.age < IN_TIME && !run.isDirected;
        const most = isTold ? UNUSED_TOLD : isInTime ? UNUSED_WELL : UNUSED;
        const isGhost = grant?.isGhost && !isTold;
        if (isGhost) recalled(owned, member, since);
        if (now - since > most + run.slack && !isGhost && member.longestStay === 0)
          run.fail(
            `${key} has belonged for ${(now - since).toFixed(0)} ms to ${member.process.name}, ` +
              `in which no caller uses it: ${hold}`,
          );
      }
      for (const id of unused.keys()) if (!present.has(id)) unused.delete(id);

      if (run.hasFaults) return;
      for (const { name, entry, process } of entries(run)) {
        const member = run.memberOf(process);
        const isWanted = member !== undefined && run.wanting(name).some((one) => one.member === member);
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

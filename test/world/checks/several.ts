import { entries, owners } from "../ownership.ts";
import type { Check, Request, Run } from "../run.ts";

/** In ms: a release that failed is repeated within this time, when its process can reach Redis. */
const REPEATED = 4_000;
/** In ms: longer than a re-check, and than all that a call may give back and try again. */
const STUCK = 6_000;
/** The locks that multi-locks take here. */
const MEMBERS = /^(lock|mixed):/;

/** Of multi-locks: their members, and the order in which they wait for them. */
export const several = (run: Run): Check => {
  /** By process, the lock it holds, and the one it waits for: since when. */
  const wrong = new Map<string, number>();
  /** Callers of this process, other than this call. */
  const isUsed = (name: string, { member, together }: Request): boolean =>
    [...run.inside(name), ...run.wanting(name)].some(
      (one) => one.member === member && one.together !== together,
    );
  let movedAt = 0;
  const ofProcess = ({ name, member }: Request) =>
    owners(run).filter((one) => one.name === name && one.process === member.process.number);
  return {
    promise:
      "All or none, in one order: a failed acquisition releases the locks that it took, and no call waits for " +
      "a lock that comes before one that it holds.",
    entered({ member, name, together, lease }) {
      if (!together || !lease.held) return;
      const { process } = member;
      const isOwned = owners(run).some((one) => one.name === name && one.process === process.number);
      // Force-released a moment ago, or ended by Redis: its holder does not know yet.
      if (!isOwned && !run.hasFaults)
        run.fail(
          `${process.name} has ${together.names.join(" and ")}, and Redis has no hold of ${name} for it`,
        );
    },
    refused(request) {
      const { member, name, together, since } = request;
      if (!together || member.longestStay > 0 || run.isClosing(member)) return;
      const now = run.time.now;
      const holds = ofProcess(request).map(({ hold }) => hold);
      if (holds.length === 0 || isUsed(name, request)) return;
      // With faults a release may be repeated, and a late copy may bring a hold back.
      if (run.hasFaults && !run.isWell(member)) return;
      run.time.after(run.hasFaults ? REPEATED : run.slack, () => {
        const kept = ofProcess(request).find(
          (one) => holds.includes(one.hold) && !run.grants.of(one)?.isGhost,
        );
        if (!kept || member.process.isDead || isUsed(name, request) || run.isClosing(member)) return;
        const { network, process } = member;
        const isWell = run.isWell(member) && network.lostAt < since && process.pausedUntil < now;
        if (run.hasFaults && !isWell) return;
        run.fail(
          `${member.process.name} did not get ${together.names.join(" and ")}, for which it asked at ` +
            `${since.toFixed(0)} ms, and keeps ${name}: ${kept.hold}`,
        );
      });
    },
    inspect() {
      const calls = [...run.requests].filter(({ together }) => together);
      if (calls.length === 0) {
        movedAt = run.time.now;
        wrong.clear();
        return;
      }
      const held = owners(run);
      // Does no caller that waits have to wait for another one that waits?
      const isUsedByNone = [...run.holdings].every(
        ([name]) => !MEMBERS.test(name) || run.inside(name).length === 0,
      );
      const isFree = held.every((one) => {
        const owner = run.memberOf(one.process);
        const isWell = owner !== undefined && run.isWell(owner) && !run.isClosing(owner);
        // A hold that a late copy has brought back stays until its end, and no call has it.
        return !MEMBERS.test(one.name) || (isWell && !run.grants.of(one)?.isGhost);
      });
      // One that cannot reach Redis waits alone.
      const areWell = calls.every(({ member }) => run.isWell(member));
      if (!areWell || !isUsedByNone || !isFree) movedAt = run.time.now;
      const waits = run.time.now - Math.max(movedAt, ...calls.slice(0, 1).map(({ since }) => since));
      if (waits > STUCK)
        run.fail(`callers of several locks wait for each other: for ${waits.toFixed(0)} ms none has any`);
      const present = new Set<string>();
      const queued = entries(run);
      for (const request of calls) {
        const { member, name, together } = request;
        const { process } = member;
        const isMine = (one: { process: number }): boolean => one.process === process.number;
        if (member.longestStay > 0 || isUsed(name, request)) continue;
        const place = queued.find((one) => one.name === name && isMine(one));
        if (!place) continue;
        const later = held.find(
          (one) =>
            isMine(one) &&
            one.name > name &&
            together?.names.includes(one.name) &&
            !isUsed(one.name, request) &&
            !run.grants.of(one)?.isGhost,
        );
        // It may have just left: then its release is under way.
        if (!later || !run.isWell(member)) continue;
        const id = `${later.hold} ${place.entry}`;
        present.add(id);
        const since = wrong.get(id) ?? run.time.now;
        wrong.set(id, since);
        if (run.time.now - since > run.slack + (run.hasFaults ? 2_000 : 0))
          run.fail(`${process.name} waits for ${name}, and holds ${later.name}, which comes after it`);
      }
      for (const id of wrong.keys()) if (!present.has(id)) wrong.delete(id);
    },
  };
};

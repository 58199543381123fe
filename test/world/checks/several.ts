import { entries, owners } from "../ownership.ts";
import type { Check, Request, Run } from "../run.ts";

/** Of multi-locks: their members, and the order in which they wait for them. */
export const several = (run: Run): Check => {
  /** By process, the lock it holds, and the one it waits for: since when. */
  const wrong = new Map<string, number>();
  /** Callers of this process, other than this call. */
  const isUsed = (name: string, { member, together }: Request): boolean =>
    [...run.inside(name), ...run.wanting(name)].some(
      (one) => one.member === member && one.together !== together,
    );
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
      // With faults, the check of unused holds waits for the releases that are repeated.
      if (!together || run.hasFaults || member.longestStay > 0) return;
      const isLeft = () =>
        owners(run).filter((one) => one.name === name && one.process === member.process.number);
      const holds = isLeft().map(({ hold }) => hold);
      if (holds.length === 0 || isUsed(name, request)) return;
      run.time.after(run.slack, () => {
        const kept = isLeft().find(({ hold }) => holds.includes(hold));
        if (!kept || member.process.isDead || isUsed(name, request)) return;
        run.fail(
          `${member.process.name} did not get ${together.names.join(" and ")}, for which it asked at ` +
            `${since.toFixed(0)} ms, and keeps ${name}: ${kept.hold}`,
        );
      });
    },
    inspect() {
      const calls = [...run.requests].filter(({ together }) => together);
      if (calls.length === 0) return wrong.clear();
      const present = new Set<string>();
      const [held, queued] = [owners(run), entries(run)];
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
            !isUsed(one.name, request),
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

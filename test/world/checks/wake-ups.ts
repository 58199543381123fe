import { owners } from "../ownership.ts";
import type { Check, Member, Run } from "../run.ts";

/** In ms: from the grant in Redis until its caller has it, when nothing is in the way. */
const USED_WITHIN = 300;
/** Kinds that do not wait by messages re-check at their own pace, in ms. */
const PACED: Readonly<Record<string, number>> = { spin: 1_500, redisson: 500, redissonFenced: 500 };

export const wakeUps = (run: Run): Check => {
  /** When a caller began or ended to hold it last. */
  const freeSince = new Map<string, number>();
  /** By hold: since when Redis has had it, while its process could use it. */
  const grants = new Map<string, number>();
  const trouble = new Map<Member, number>();
  return {
    promise: "A waiting caller gets a lock that is released by one message, not by a re-check.",
    entered({ name, kind, member, since, together }) {
      if (run.hasFaults || run.inside(name).length > 1) return;
      // A call for several locks may have had this one while it waited for another.
      if (together || run.wanting(name).some((one) => one.together)) return;
      const free = Math.max(freeSince.get(name) ?? 0, since);
      const most = run.slack + (PACED[kind.family] ?? 0);
      if (run.time.now - free > most)
        run.fail(
          `${name} was free for ${(run.time.now - free).toFixed(0)} ms while ${member.process.name} waited`,
        );
    },
    leaving: ({ name }) => void freeSince.set(name, run.time.now),
    refused: ({ name, together }) => {
      if (together) freeSince.set(name, run.time.now);
    },
    left: ({ name }) => void freeSince.set(name, run.time.now),
    inspect() {
      const { now } = run.time;
      for (const member of run.members) if (!run.isWell(member)) trouble.set(member, now);
      const present = new Set<string>();
      for (const owned of owners(run)) {
        const { hold, name, process } = owned;
        const member = [...run.members].find((one) => one.process.number === process);
        const inside = run.inside(name).filter((one) => one.member === member);
        const waiting = run.waiting(name).filter((one) => one.member === member);
        // A call of it for several locks may have this one, while it waits for another.
        const isShared = run.wanting(name).some((one) => one.member === member && one.together);
        const isAwaited =
          inside.length === 0 && !isShared && waiting.some(({ since }) => now - since > USED_WITHIN);
        if (!member || !isAwaited || !run.grants.isPassed(owned)) continue;
        present.add(hold);
        const since = Math.max(grants.get(hold) ?? now, trouble.get(member) ?? 0);
        grants.set(hold, since);
        if (now - since > USED_WITHIN + run.slack)
          run.fail(
            `${name} has belonged for ${(now - since).toFixed(0)} ms to ${member.process.name}, ` +
              `which is well, waits for it and does not use it: ${hold}`,
          );
      }
      for (const hold of grants.keys()) if (!present.has(hold)) grants.delete(hold);
    },
  };
};

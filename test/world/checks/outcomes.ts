import { codeOf, isAbort } from "../callers.ts";
import type { Check, Request, Run } from "../run.ts";

/** In ms: from an abort until its caller knows. */
const ABORTED_WITHIN = 300;
/** In ms: a waiter re-checks, and doubts that Redis is there 500 ms after a re-check without an answer. */
const NOTICED = 3_000;
/** Among many places of one process only the first re-checks, and less often further back. */
const NOTICED_FAIR = 5_000;

/** Since when Redis could not answer this process, in ms of the run; Infinity: it can. */
function silentSince(run: Run, { member }: Request): number {
  const { network, link } = member;
  const { now } = run.time;
  if (link.state !== "ready") return network.lostAt;
  const wire = network.wireOf(link);
  const lasting = ({ since, until }: { since: number; until: number }): number =>
    until > now + 1 ? since : Number.POSITIVE_INFINITY;
  const { from, until } = run.server.paused;
  const silences = [{ since: from, until }, ...(wire ? [wire.frozen, wire.deaf] : [])];
  return Math.max(wire?.receivedAt ?? 0, Math.min(...silences.map(lasting)));
}

/** What a call ends with. */
export const outcomes = (run: Run): Check => {
  /** When a caller last began to give this back, by process and name. */
  const leftAt = new Map<string, number>();
  const placeOf = ({ member, name }: Pick<Request, "member" | "name">): string =>
    `${member.process.number} ${name}`;
  return {
    promise:
      "LOCK_TIMEOUT means that Redis reported another holder; a call ends in its time, or when it aborts.",
    refused(request, error) {
      const { kindName, kind, name, wait, since, abortedAt, member, together } = request;
      const what = `${kindName} ${name}, ${member.process.name}`;
      const took = run.time.now - since;
      const code = error === null ? "busy" : codeOf(error);
      const most = Math.max(wait ?? 0, 0) + 700;
      if (code === "LOCK_TIMEOUT" && !together) {
        if (wait === Number.POSITIVE_INFINITY) run.fail(`${what}: LOCK_TIMEOUT without a time to wait`);
        // A call of its process for several locks may have this one, while it waits for another.
        const several = run.wanting(name).filter((one) => one.together);
        // One that got it a moment ago, and has given it back in the same statement, counts, too.
        const isInsideHere =
          leftAt.get(placeOf(request)) === run.time.now ||
          [...run.inside(name), ...several].some((one) => one.member === member);
        const silent = silentSince(run, request);
        const isPaused = member.process.pausedUntil > since;
        // A waiter of Redisson's locks re-checks when the holder's time is over, and not before.
        const isAsking = !kind.family.startsWith("redisson") && !isPaused;
        const hasPlaces = kind.isFair || kind.family === "mixed";
        const isKnown = isAsking && run.time.now - silent > (hasPlaces ? NOTICED_FAIR : NOTICED);
        if ((silent < since || isKnown) && !isInsideHere)
          run.fail(
            `${what}: LOCK_TIMEOUT after ${took.toFixed(0)} ms, and Redis could not answer in the last ` +
              `${(run.time.now - silent).toFixed(0)} ms`,
          );
      }
      if (run.hasFaults) return;
      if (code === "LOCK_UNAVAILABLE") run.fail(`${what}: LOCK_UNAVAILABLE without a fault`);
      if ((code === "LOCK_TIMEOUT" || code === "busy") && took > most)
        run.fail(`${what}: ${code} after ${took.toFixed(0)} ms, with ${wait} ms to wait`);
      if (isAbort(error) && run.time.now - abortedAt > ABORTED_WITHIN)
        run.fail(`${what}: ended ${(run.time.now - abortedAt).toFixed(0)} ms after its signal aborted`);
    },
    leaving(holding) {
      leftAt.set(placeOf(holding), run.time.now);
    },
    entered({ kindName, name, member, abortedAt }) {
      const late = run.time.now - abortedAt;
      const isPaused = member.process.pausedUntil > abortedAt;
      if (late > ABORTED_WITHIN && !isPaused)
        run.fail(
          `${kindName} ${name}, ${member.process.name}: acquired ${late.toFixed(0)} ms after its signal aborted`,
        );
    },
  };
};

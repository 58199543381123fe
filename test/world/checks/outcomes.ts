import { codeOf, isAbort } from "../callers.ts";
import type { Check, Request, Run } from "../run.ts";

/** In ms: from an abort until its caller knows. */
const ABORTED_WITHIN = 300;

/** Since when Redis could not answer this process, in ms of the run; Infinity: it can. */
function silentSince(run: Run, { member }: Request): number {
  const { network, link } = member;
  const { now } = run.time;
  if (link.state !== "ready") return network.lostAt;
  const wire = network.wireOf(link);
  const frozen = wire && wire.frozen.until > now ? wire.frozen.since : Number.POSITIVE_INFINITY;
  const { paused } = run.server;
  return Math.min(frozen, paused.until > now + 1 ? paused.from : Number.POSITIVE_INFINITY);
}

/** What a call ends with. */
export const outcomes = (run: Run): Check => ({
  promise:
    "LOCK_TIMEOUT means that Redis reported another holder; a call ends in its time, or when it aborts.",
  refused(request, error) {
    const { kindName, name, wait, since, abortedAt, member } = request;
    const what = `${kindName} ${name}, ${member.process.name}`;
    const took = run.time.now - since;
    const code = error === null ? "busy" : codeOf(error);
    const most = Math.max(wait ?? 0, 0) + 700;
    if (code === "LOCK_TIMEOUT") {
      if (wait === Number.POSITIVE_INFINITY) run.fail(`${what}: LOCK_TIMEOUT without a time to wait`);
      const isInsideHere = run.inside(name).some((one) => one.member === member);
      if (silentSince(run, request) < since && !isInsideHere)
        run.fail(`${what}: LOCK_TIMEOUT after ${took.toFixed(0)} ms, in which Redis could not answer`);
    }
    if (run.hasFaults) return;
    if (code === "LOCK_UNAVAILABLE") run.fail(`${what}: LOCK_UNAVAILABLE without a fault`);
    if ((code === "LOCK_TIMEOUT" || code === "busy") && took > most)
      run.fail(`${what}: ${code} after ${took.toFixed(0)} ms, with ${wait} ms to wait`);
    if (isAbort(error) && run.time.now - abortedAt > ABORTED_WITHIN)
      run.fail(`${what}: ended ${(run.time.now - abortedAt).toFixed(0)} ms after its signal aborted`);
  },
  entered({ kindName, name, member, abortedAt }) {
    const late = run.time.now - abortedAt;
    const isPaused = member.process.pausedUntil > abortedAt;
    if (late > ABORTED_WITHIN && !isPaused)
      run.fail(
        `${kindName} ${name}, ${member.process.name}: acquired ${late.toFixed(0)} ms after its signal aborted`,
      );
  },
});

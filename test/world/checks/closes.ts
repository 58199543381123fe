import { codeOf, isAbort } from "../callers.ts";
import { entries, owners } from "../ownership.ts";
import type { Check, Closing, Member, Request, Run } from "../run.ts";

/** In ms: until all waiters of a client know that it is closed, and holders that their time is over. */
const TOLD = 20;
/** In ms: a caller whose time is over learns by one more query who holds the lock, and a little more. */
const HOLDER_KNOWN = 110;
/** In ms: a multi-lock first gives back what it took, as far as Redis answers within this. */
const GIVEN_BACK = 500;
/** In ms: the longest that a late copy of a command is under way. */
const LATE_COPY = 9_000;

/** A client that closes while callers hold and wait. */
export const closes = (run: Run): Check => {
  const trouble = new Map<Member, number>();
  const isAwake = ({ process }: Member, since: number): boolean =>
    !process.isDead && process.busyUntil <= run.time.now && process.pausedUntil < since;

  // A candidate that publishes its value, and a multi-lock that extends what it took, hold it already.
  // While Redis does not answer, they have `grace` as other holders.
  const mayHold = ({ kindName, together }: Pick<Request, "kindName" | "together">): boolean =>
    run.hasFaults && (kindName === "term" || together !== undefined);

  /** Was its time to wait over before `close()`? Its clock may be 1 % slow. */
  const isTimedOut = ({ wait, since }: Request, closing: Closing): boolean =>
    wait !== null && since + 0.99 * wait <= closing.since;

  const inspectOne = (member: Member, closing: Closing): void => {
    const { since, grace, until } = closing;
    const { now } = run.time;
    const { process } = member;
    if (!isAwake(member, since)) return;
    for (const request of run.requests) {
      const { member: one, kindName, name, together, since: asked } = request;
      const own = (together ? GIVEN_BACK : 0) + (mayHold(request) ? grace : 0);
      const most = TOLD + own + (isTimedOut(request, closing) ? HOLDER_KNOWN : 0);
      // A call may learn only after close() that it would have to wait.
      if (one === member && now - Math.max(since, asked) > most)
        run.fail(
          `${process.name} waits for ${kindName} ${name} ${(now - since).toFixed(0)} ms after its close()`,
        );
    }
    for (const holdings of run.holdings.values())
      for (const { member: one, kindName, name, lease } of holdings)
        if (one === member && now - since > grace + TOLD && lease.held)
          run.fail(
            `${kindName} ${name} of ${process.name} is held ${(now - since).toFixed(0)} ms after close() ` +
              `with ${grace} ms of grace`,
          );
    const isDone = until < Number.POSITIVE_INFINITY;
    // After the grace it waits as long for answers.
    if (!isDone && now - since > 2 * grace + run.slack)
      run.fail(`close() of ${process.name} with ${grace} ms of grace takes ${(now - since).toFixed(0)} ms`);
    // What Redis did not answer in time runs out by itself, and a late copy may bring it back.
    const isSure = Math.max(member.network.lostAt, trouble.get(member) ?? 0) < since - LATE_COPY;
    if (!isDone || now - until < run.slack || now - until > LATE_COPY || grace === 0 || !isSure) return;
    const places = entries(run).filter((one) => one.process === process.number);
    if (places.length > 0)
      run.fail(`after close() of ${process.name} its places are left: ${places.map(({ name }) => name)}`);
    const holds = owners(run).filter((one) => one.process === process.number);
    if (holds.length > 0)
      run.fail(`after close() of ${process.name} its holds are left: ${holds.map(({ name }) => name)}`);
  };

  return {
    promise:
      "`locks.close()` rejects waiters with ClientClosedError, and gives holders `grace` to finish; then the " +
      "lock is released.",
    entered(holding) {
      const { member, kindName, name } = holding;
      const { closing, process } = member;
      if (closing && run.time.now > closing.since + (mayHold(holding) ? closing.grace : 0))
        run.fail(
          `${process.name} gets ${kindName} ${name} ${(run.time.now - closing.since).toFixed(1)} ms after close()`,
        );
    },
    refused(request, error) {
      const { member, kindName, name } = request;
      const { closing, process } = member;
      if (!closing || run.time.now <= closing.since + (mayHold(request) ? closing.grace : 0)) return;
      const code = error === null ? "busy" : codeOf(error);
      if (code === "LOCK_TIMEOUT" && isTimedOut(request, closing)) return;
      if (code !== "CLIENT_CLOSED" && !isAbort(error))
        run.fail(`${kindName} ${name} of ${process.name} ends with ${code} after close()`);
    },
    inspect() {
      for (const member of run.members) if (!run.isWell(member)) trouble.set(member, run.time.now);
      for (const member of run.members) if (member.closing) inspectOne(member, member.closing);
    },
  };
};

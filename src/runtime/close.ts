import { LockError } from "../api/errors.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import type { Port } from "../core/port.ts";
import { UNANSWERED } from "../defaults.ts";
import { atMost } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { duration } from "../util/duration.ts";
import { quote } from "../util/quote.ts";
import type { SelfWait } from "./self-wait.ts";

/**
 * Ends a client. Protects other clients from leases that would stay after it, and the caller of
 * `close()` from waiting for a Redis that does not answer. Holders get `grace` ms, then their
 * leases are taken. Answers from Redis are awaited for as long as a first command may take.
 * `emptied`: every resource, and every other hold, has ended, by its holder's unlock or by the
 * answer to the command under way.
 */
export async function closeManager(
  { commands, watchdog, events, inbox, timers, cleanup, selfWait }: Closing,
  emptied: Promise<unknown>,
  grace: number,
): Promise<void> {
  const patience = Math.min(grace, commands.replyTimeout);
  const answerBy = clocks.mono.now() + patience;
  await atMost(emptied, watchdog.leases.size > 0 ? grace : patience);
  const left = [...watchdog.leases];
  events.step(() => {
    // These are reported. With no grace, the caller has requested it.
    if (left.length > 0 && grace > 0) events.report(leftBehind(left));
    for (const lease of left) lease.lose("closed");
  });
  // One time limit for all answers: a Redis that did not answer during the grace will not answer
  // now. Leases that end only now, or late in the grace, get the time of a first command; their
  // commands are written in any case.
  const least = Math.min(grace, UNANSWERED);
  await atMost(cleanup.end(), Math.max(least, answerBy - clocks.mono.now()));
  inbox.subscriptions.close();
  commands.detach();
  timers.close();
  watchdog.close();
  selfWait.close();
}

interface Closing extends Pick<Port, "commands" | "watchdog" | "events" | "inbox" | "timers" | "cleanup"> {
  readonly selfWait: SelfWait;
}

function leftBehind(leases: readonly SharedLease[]): LockError {
  const at = clocks.mono.now();
  const [first] = leases;
  const held = leases
    .slice(0, 10)
    .map(
      ({ name, noun, since }) =>
        `${noun === LOCK ? "" : `${noun.toLowerCase()} `}${quote(name)} (for ${duration(at - since)})`,
    )
    .join(", ");
  const more = leases.length > 10 ? ` and ${leases.length - 10} more` : "";
  const name = leases.length === 1 && first ? first.name : null;
  const [these, cure] = leases.every(({ noun }) => noun === LOCK)
    ? ["these locks were still held", "unlock them"]
    : ["these were still held", "give them back"];
  const text = `The lock client was closed while ${these}, and took them away from their holders: ${held}${more}; ${cure} before close(), or give their holders a longer \`grace\`.`;
  return new LockError("LOCK_LEFT_BEHIND", name, text);
}

/** A lock of this kind is listed without its kind's name. */
const LOCK = "Lock";

import { LockLostError, LockUnavailableError, NotReplicatedError } from "../../api/errors.ts";
import { nounOf } from "../../api/wording.ts";
import { isRefusal, type ReleaseAnswer } from "../../redis/replies.ts";
import type { Hold } from "./hold.ts";

// How a hold ended, by Redis's answer to its release, or the lack of one.

/** Whose hold it is, for messages. */
type Kind = Parameters<typeof nounOf>[0];

/**
 * How a hold ended, by Redis's answer to its release or yield. Null: as it should.
 *
 * "Gone" can mean that our own command ran twice: the connection broke before the first reply was
 * read, no process waited, and the second copy found nothing. That is so if the connection did
 * break, the hold's time is not over, and the server is one that has issued our token. Otherwise
 * the lock was lost before it was released.
 *
 * RACE, a slow release: it is only sent while the hold is valid, so the work was protected to its
 * end. If its answer is read after that time, the command may have taken so long that the key
 * expired first, and another process may have the lock by then: nothing was lost. An answer in time
 * is proof: the key should have been there. This hides a key that was deleted or force-released
 * before a release that was slow too.
 */
export function releaseOutcome(
  hold: Hold,
  answer: ReleaseAnswer,
  isBroken: boolean,
  kind: Kind,
): LockLostError | null {
  if (answer.is === "released" || hold.left() <= 0) return null;
  const isOwnCopy = answer.is === "gone" && isBroken && hold.token > 0 && (answer.clock ?? 0) >= hold.token;
  if (isOwnCopy) return null;
  return new LockLostError(
    hold.name,
    isBroken ? "unknown" : answer.is,
    undefined,
    undefined,
    null,
    nounOf(kind),
  );
}

/**
 * Why replicas will never confirm a hold, as an error for each caller. Null: the obstacle is
 * temporary.
 */
export function refused(name: string, error: unknown, kind: Kind): (() => Error) | null {
  if (error instanceof NotReplicatedError)
    return () => new NotReplicatedError(name, error.wanted, error.acknowledged, nounOf(kind));
  if (!isRefusal(error)) return null;
  return () => new LockUnavailableError(name, "its replicas cannot be waited for", error, nounOf(kind));
}

/** Redis did not confirm; the hold is withdrawn in the background. */
export function unconfirmed(hold: Hold, cause: unknown, kind: Kind): LockUnavailableError {
  return new LockUnavailableError(
    hold.name,
    "its release, which is tried again until the lease ends, was not confirmed",
    cause,
    nounOf(kind),
  );
}

/** The result of an unlock that needs no round trip: one promise for all. */
export const DONE: Promise<void> = Promise.resolve();

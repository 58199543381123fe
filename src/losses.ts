/** Why a lease was lost. `docs/errors.md` says what to do about each. */
export type LossReason = "expired" | "taken" | "gone" | "revoked" | "closed" | "scope" | "unknown";

const GONE = "its key is not in Redis any more: it ran out, was evicted, deleted, or lost with a server";
const LOSSES: Record<LossReason, string> = {
  expired: "its lease ran out on this process's clock before it was renewed or released.",
  taken: "somebody else holds it, so its lease had run out in Redis, or it was taken away by forceUnlock().",
  gone: `${GONE}, or was taken away by forceUnlock().`,
  revoked: "it was released by force, by forceUnlock().",
  closed: "this client was closed while it was held.",
  scope: "the scope in which it was taken ended, and took it: unlock it in the scope, or use `await using`.",
  unknown:
    "the connection broke while it was released, and Redis cannot tell whether it was held until then.",
};

/** The same of what has no forceUnlock(): an election has forceResign(), a turn nothing. */
const UNFORCED: Readonly<Record<string, Partial<Record<LossReason, string>>>> = {
  Election: {
    taken: "somebody else leads, so its lease had run out in Redis, or it was ended by forceResign().",
    gone: `${GONE}, or was ended by forceResign().`,
    revoked: "it was ended by force, by forceResign().",
  },
  "The turn of": { taken: "somebody else has it, so its lease had run out in Redis.", gone: `${GONE}.` },
};

/** How messages tell the reason, by what they call the thing that was lost. */
export const lossOf = (noun: string, reason: LossReason): string =>
  UNFORCED[noun]?.[reason] ?? LOSSES[reason];

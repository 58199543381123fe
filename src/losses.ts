/** Why a lease was lost. `docs/errors.md` says what to do about each. */
export type LossReason = "expired" | "taken" | "gone" | "revoked" | "closed" | "scope" | "unknown";

const GONE = "its key is gone from Redis: it ran out, or was evicted, deleted, lost with a server";
const STOP = "; stop the work that it protects";
const LOSSES: Record<LossReason, string> = {
  expired: "its lease ran out on this process's clock before it was renewed or released",
  taken: "another caller holds it, so its lease ran out in Redis, or forceUnlock() ended it",
  gone: `${GONE} or ended by forceUnlock()`,
  revoked: "forceUnlock() ended it",
  closed:
    "this lock client was closed while it was held; let its holder finish before close(), or give a longer `grace`",
  scope: "the scope in which it was taken ended; give it back in the scope, or use `await using`",
  unknown: "the connection broke while it was released, and Redis cannot tell whether it was held until then",
};

/** The same of what has no forceUnlock(): an election has forceResign(), a turn nothing. */
const UNFORCED: Readonly<Record<string, Partial<Record<LossReason, string>>>> = {
  Election: {
    taken: "another candidate leads, so its lease ran out in Redis, or forceResign() ended it",
    gone: `${GONE} or ended by forceResign()`,
    revoked: "forceResign() ended it",
  },
  "The turn of": {
    taken: "another caller has it, so its lease ran out in Redis",
    gone: GONE.replace(", lost", " or lost"),
  },
};

/** The caller may still be at work when it learns of these, and did nothing wrong. */
const IN_PLACE: ReadonlySet<LossReason> = new Set(["taken", "gone", "revoked"]);

/** How messages tell the reason, by what they call the thing that was lost. `by`: the quoted label of the caller that ended it. */
export const lossOf = (noun: string, reason: LossReason, by: string | null): string =>
  `${UNFORCED[noun]?.[reason] ?? LOSSES[reason]}${by === null ? "" : `, called by ${by}`}${IN_PLACE.has(reason) ? STOP : ""}`;

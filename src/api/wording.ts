// The words for each kind of thing that can be held. Messages differ by kind only in these.

/** Why a lease was lost. `docs/errors.md` says what to do about each. */
export type LossReason = "expired" | "taken" | "gone" | "revoked" | "closed" | "scope" | "unknown";

const GONE = "its key is gone from Redis: it ran out, or was evicted, deleted, lost with a server";

interface Wording {
  /** All of the kind, for messages about none of them by name. */
  readonly plural: string;
  /**
   * The method that gives one back, without its brackets, and the form that does so automatically.
   */
  readonly end: string;
  readonly form: string;
  /** What a holder that has already given it back gets to read. */
  readonly ended: string;
  /** What a holder does with it, and the holder's name when it is unknown. */
  readonly held: "held by" | "led by" | "under way in";
  readonly other: string;
  /** What may be in the way besides the holder. */
  readonly beside: string;
  /** What a caller that has waited can do, and one that has waited for its own process. */
  readonly cure: string;
  readonly cureHere: string;
  readonly losses: Readonly<Record<LossReason, string>>;
}

const LOCK: Wording = {
  plural: "The locks",
  end: "unlock",
  form: "withLock()",
  ended: "was unlocked before, so this lease is over: take it again",
  held: "held by",
  other: "another caller",
  beside: "",
  cure: "wait longer, hold it for a shorter time, or use tryLock() and treat null as busy",
  cureHere:
    "if this call comes from the code that holds it, nest withLock(), or re-enter inside locks.scope()",
  losses: {
    expired: "its lease ran out on this process's clock before it was renewed or released",
    taken:
      "another caller holds it: its lease ran out in Redis, its key was deleted or lost, or forceUnlock() ended it",
    gone: `${GONE} or ended by forceUnlock()`,
    revoked: "forceUnlock() ended it",
    closed:
      "this lock client was closed while it was held; let its holder finish before close(), or give a longer `grace`",
    scope: "the scope in which it was taken ended; give it back in the scope, or use `await using`",
    unknown:
      "the connection broke while it was released, and Redis cannot tell whether it was held until then",
  },
};

/** By the noun of messages. */
const WORDINGS: Readonly<Record<string, Wording>> = {
  "Read lock": { ...LOCK, other: "a writer, or waited for by one", beside: ", or waited for by a writer" },
  Semaphore: {
    ...LOCK,
    plural: "The semaphores",
    end: "release",
    form: "withPermits()",
    ended: "has its permits back, so this lease is over: acquire new ones",
    cure: "wait longer, hold them for a shorter time, or use tryAcquire() and treat null as busy",
  },
  Election: {
    ...LOCK,
    end: "resign",
    form: "runAsLeader()",
    ended: "was resigned, so this term is over: campaign again",
    held: "led by",
    other: "another candidate",
    cure: "wait longer, or ask leader() who leads",
    losses: {
      ...LOCK.losses,
      taken:
        "another candidate leads: its lease ran out in Redis, its key was deleted or lost, or forceResign() ended it",
      gone: `${GONE} or ended by forceResign()`,
      revoked: "forceResign() ended it",
    },
  },
  "The run of": {
    ...LOCK,
    plural: "The runs",
    ended: "is over, because its body has ended",
    held: "under way in",
    other: "another process",
    cure: "wait longer, or treat it as busy",
    cureHere: "if its body makes this call, it waits for itself: use another name",
    losses: {
      ...LOCK.losses,
      taken:
        "another caller runs: its lease ran out in Redis, its key was deleted or lost, or stopRun() ended it",
      gone: `${GONE} or ended by stopRun()`,
      revoked: "stopRun() ended it",
    },
  },
  "The turn of": {
    ...LOCK,
    plural: "The turns",
    ended: "is over, because its body has ended",
    losses: {
      ...LOCK.losses,
      taken: "another caller has it: its lease ran out in Redis, or its key was deleted or lost",
      gone: GONE.replace(", lost", " or lost"),
    },
  },
};

/** The words for a noun. */
export const wordingOf = (noun: string): Wording => WORDINGS[noun] ?? LOCK;

/** What messages call a thing, by its kind. Used only for errors. */
export function nounOf({ protocol, mode }: Kind): string {
  if (mode) return mode === "read" ? "Read lock" : "Write lock";
  return NOUNS[protocol] ?? "Lock";
}

interface Kind {
  readonly protocol: string;
  readonly mode?: "read" | "write" | undefined;
}

const NOUNS: Readonly<Record<string, string>> = {
  semaphore: "Semaphore",
  election: "Election",
  once: "The turn of",
  remember: "The run of",
};

/** The method that gives a thing back, by its noun. */
export const endOf = (noun: string): string => wordingOf(noun).end;

/**
 * After these the caller may still be working when it learns of the loss, through no fault of its
 * own.
 */
const IN_PLACE: ReadonlySet<LossReason> = new Set(["taken", "gone", "revoked"]);

/**
 * The reason in messages, by the noun of what was lost. `by`: the quoted label of the caller that
 * ended it.
 */
export const lossOf = (noun: string, reason: LossReason, by: string | null): string =>
  `${wordingOf(noun).losses[reason]}${by === null ? "" : `, called by ${by}`}${IN_PLACE.has(reason) ? "; stop the work that it protects" : ""}`;

import { type LockError, LockFormatError, LockUnavailableError } from "../api/errors.ts";
import type { Inspected } from "../api/lock.ts";
import type { HoldingParty } from "../api/party.ts";
import { codes } from "./codes.generated.ts";
import { unexpected } from "./fields.ts";
import { holding, partyOf, waiting } from "./party.ts";
// What answers say to the engine. One vocabulary for all lock kinds.

/** What a run leaves. `state`: a value, undefined, or a value that could not be stored. */
export interface Result {
  readonly state: "v" | "u" | "x";
  /** "-": none. */
  readonly fingerprint: string;
  /** Empty unless it is a value. */
  readonly json: string;
}

/** A result that Redis remembers. */
export interface Kept extends Result {
  /** Of the run that made it. */
  readonly token: number;
  /** When it was stored, the server's time in µs. */
  readonly at: number;
  /** For how many ms new callers get it. 0: only callers that have waited for its run. */
  readonly rest: number;
}

/** Of an attempt to take a lock, or of a re-check. `at` is the server's time in µs when the script ran. */
export type AttemptAnswer =
  | Placed
  | { readonly is: "gone"; readonly at: number }
  | { readonly is: "stale"; readonly at: number }
  /** Of a try within a multi-lock: this client does not hold the lock before it. */
  | { readonly is: "blocked"; readonly at: number }
  /** Of a result that callers share: it is there, and the hold is over. */
  | { readonly is: "kept"; readonly at: number; readonly kept: Kept }
  /** This caller cannot have it, however long it waits; other callers may. */
  | { readonly is: "refused"; readonly at: number; readonly error: LockError };

export type Placed =
  | {
      readonly is: "owner";
      readonly at: number;
      readonly token: number;
      readonly ttl: number;
      readonly already: boolean;
      /** Does a caller wait in the queue? False for kinds that have none. */
      readonly waits: boolean;
      /** Is the holder notified of waiters from now on? */
      readonly isTold: boolean;
    }
  | {
      readonly is: "held";
      readonly at: number;
      readonly ttl: number;
      readonly position: number | null;
      /**
       * Is the holder notified of waiters (1), and may it be idle (2)? 0 for kinds that notify no
       * holder.
       */
      readonly flag: HolderFlag;
      /** Of a result that callers share: the token of the run under way. */
      readonly token?: number;
      /** Distinguishes this holder from the next one for kinds whose wake-ups are public. */
      readonly holder?: string;
      /**
       * There is no holder: several callers tried at once and blocked each other. `ttl`: when to
       * retry.
       */
      readonly contended?: boolean;
    };

/** Of a release. `clock` is the last fencing token that was given, if known. */
export interface ReleaseAnswer {
  readonly is: "released" | "gone" | "taken";
  readonly clock?: number;
  /** The result that it has stored, for callers that share it. */
  readonly kept?: Kept;
}

/** The hold has ended by this release. */
export const RELEASED: ReleaseAnswer = { is: "released" };

/** Of a yield: the place of the new hold, or the state of the old one if it had ended. */
export type YieldAnswer = Placed | ReleaseAnswer;

/**
 * The holder's state in a lock's value: 0: it is not notified of waiters; 1: it is; 2: it is, and
 * may be idle.
 */
export type HolderFlag = 0 | 1 | 2;

/** Of a renewal: `ttl` ms are left now, Infinity when the key has no TTL; 0 unless renewed. */
export interface RenewAnswer {
  readonly is: "renewed" | "gone" | "taken";
  readonly ttl: number;
  /** Does a caller wait? Undefined: unknown from this renewal. */
  readonly waits?: boolean;
  /**
   * The server's time in µs: every later holder's token is higher. 0 or undefined: unknown from this
   * renewal.
   */
  readonly at?: number;
  /** The holder's state from now on. */
  readonly told?: HolderFlag;
  /** When it was read, on both clocks, if replicas were waited for since then. */
  readonly read?: { readonly mono: number; readonly wall: number };
}

/** What the scripts of all kinds answer to an attempt. Some have fields that others lack. */
type PlaceReply =
  | { readonly is: "owner"; readonly at: number; readonly token: number; readonly waits?: boolean }
  | {
      readonly is: "mine";
      readonly at: number;
      readonly token: number;
      readonly ttl: number;
      readonly waits?: boolean;
      readonly told?: HolderFlag;
    }
  | {
      readonly is: "held";
      readonly at: number;
      readonly ttl: number;
      readonly place: number;
      readonly told?: HolderFlag;
      readonly holder?: string;
    };

export type AttemptReply = PlaceReply | { readonly is: "gone" | "stale" | "blocked"; readonly at: number };

interface Asked {
  readonly lease: number;
  readonly flag: HolderFlag;
}

/** Of an attempt with a lease of that many ms, and this digit. */
export function attemptOf(answer: PlaceReply, asked: Asked): Placed;
export function attemptOf(answer: AttemptReply, asked: Asked): AttemptAnswer;
export function attemptOf(answer: AttemptReply, { lease, flag }: Asked): AttemptAnswer {
  const { is, at } = answer;
  switch (is) {
    case "owner": {
      const { token, waits = false } = answer;
      return { is, at, token, ttl: lease, already: false, waits, isTold: flag > 0 };
    }
    case "mine": {
      const { token, ttl, waits = false, told = 0 } = answer;
      return { is: "owner", at, token, ttl, already: true, waits, isTold: told > 0 };
    }
    case "held": {
      const { ttl, place, told = 0, holder } = answer;
      const held = { is, at, ttl, position: place < 0 ? null : place, flag: told };
      return holder === undefined ? held : { ...held, holder };
    }
  }
  return { is, at };
}

/**
 * An answer "held" in one number; see lua/handoff/acquire.lua. `notAfter`: the argument of the
 * command, in µs.
 */
export function readHeld(reply: unknown, notAfter: number): Extract<Placed, { is: "held" }> {
  const packed = Number(reply);
  if (!(packed >= codes.HELD_PACKED && packed <= Number.MAX_SAFE_INTEGER)) throw unexpected(reply);
  // The low half is a whole number of 29 bits.
  const early = Math.floor((packed - codes.HELD_PACKED) / LOW);
  const low = packed % LOW;
  const place = ((low >> 2) & 1_023) - 1;
  const told = low & 3;
  if (told !== 0 && told !== 1 && told !== 2) throw unexpected(reply);
  const at = notAfter - early;
  return { is: "held", at, ttl: low >> 12, position: place < 0 ? null : place, flag: told };
}

const LOW = 2 ** 29;

/** Of a kind without a queue. Its tokens, if any, are no times. `hold` "": it is free. */
export function inspectionOf({ hold, token, remaining }: Shown): Inspected {
  if (hold === "") return inspected(null, null);
  return inspected(holding(partyOf(hold, null), null, { token: token || null, remaining }), null);
}

interface Shown {
  readonly hold: string;
  readonly token: number;
  readonly remaining: number;
}

/** Of a lock or an election. `now`: in µs, as tokens and tickets are. */
export function queueInspectionOf(
  now: number,
  shown: Shown & {
    readonly told: HolderFlag;
    readonly waiters: readonly { readonly hold: string; readonly ticket: number }[];
  },
): Inspected {
  const { hold, token } = shown;
  const at = Math.floor(now / 1_000);
  const holder = hold === "" ? null : holding(partyOf(hold, token, now), at, shown);
  const waiters = shown.waiters.map((one) => waiting(partyOf(one.hold, one.ticket, now), at));
  return inspected(holder, waiters, at, shown.told === 2);
}

export function inspected(
  holder: HoldingParty | null,
  waiters: Inspected["waiters"],
  at: number | null = null,
  kept = false,
): Inspected {
  const { token = null, remaining = null } = holder ?? {};
  return { holder, token, remaining, kept, waiters, at };
}

/** A token as stored in Redis; null: "". */
export const asDigits = (token: number | null): string =>
  token === null ? "" : String(token).padStart(16, "0");

/**
 * Did Redis refuse a command, as it will whenever it is sent? Every other error may pass: MOVED,
 * TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, MASTERDOWN, UNBLOCKED …, and a lost connection. Redis
 * 6.2 has no code for a right that a script lacks, only words.
 */
export const isRefusal = (error: unknown): error is Error =>
  error instanceof Error &&
  error.name === "ReplyError" &&
  /^(NOPERM |ERR (unknown command |WAIT cannot be used |unsupported: |.*@user_script: \d+: The user executing the script can't ))/.test(
    error.message,
  );

/** Does Redis refuse the connection's user or password? Waiting does not help. */
export const isAboutAccess = (error: unknown): boolean =>
  error instanceof Error &&
  /^(WRONGPASS|NOAUTH|DENIED|ERR (AUTH |invalid password|Client sent AUTH))/.test(error.message);

/**
 * In Cluster, while a slot moves: the command's keys are at two nodes. If ioredis has kept trying,
 * the error names the node of its last try.
 */
export const isApart = (error: unknown): boolean =>
  error instanceof Error && /TRYAGAIN|Too many Cluster redirections/.test(error.message);

/** What a command's failure with `cause` means to its caller. */
export function unavailable(
  lockName: string | null,
  what: string,
  cause: unknown,
  noun = "Lock",
): LockUnavailableError | LockFormatError {
  const found = foreignFormat(cause);
  return found === null
    ? new LockUnavailableError(lockName, what, cause, noun)
    : new LockFormatError(lockName, found, cause, noun);
}

/** The format that a script found instead of its own; null: it failed for another reason. */
export function foreignFormat(error: unknown): number | null {
  const [, found] = (error instanceof Error && /^LOCKFORMAT (\d)/.exec(error.message)) || [];
  return found === undefined ? null : Number(found);
}

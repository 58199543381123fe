import { type LockError, LockFormatError, LockUnavailableError } from "../api/errors.ts";
import type { Inspected } from "../api/lock.ts";
import type { HoldingParty } from "../api/party.ts";
import { codes } from "./codes.generated.ts";
import { type Fields, unexpected, whole } from "./fields.ts";
import { holding, partyOf, waiting } from "./party.ts";
// Decodes scripts' answers. One vocabulary for all lock kinds.

/** Of an attempt to take a lock, or of a re-check. `at` is the server's time in µs when the script ran. */
export type AttemptAnswer =
  | Placed
  | { readonly is: "gone"; readonly at: number }
  | { readonly is: "stale"; readonly at: number }
  /** Of a try within a multi-lock: this client does not hold the lock before it. */
  | { readonly is: "blocked"; readonly at: number }
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
      /** Distinguishes this holder from the next one for kinds whose wake-ups are public. */
      readonly holder?: string;
      /**
       * There is no holder: several callers tried at once and blocked each other. `ttl`: when to
       * retry.
       */
      readonly contended?: boolean;
    };

/** Of a release. `clock` is the last fencing token that was given (0: unknown). */
export interface ReleaseAnswer {
  readonly is: "released" | "gone" | "taken";
  readonly clock: number;
}

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
  /** Does a caller wait? Null: unknown from this renewal. */
  readonly waits: boolean | null;
  /**
   * The server's time in µs: every later holder's token is higher. 0: unknown from this renewal.
   */
  readonly at: number;
  /** Is the holder notified of waiters from now on? */
  readonly isTold: boolean;
  /** When it was read, on both clocks, if replicas were waited for since then. */
  readonly read?: { readonly mono: number; readonly wall: number };
}

/** Of an attempt with a lease of that many ms, and this digit. */
export function readAttempt(from: Fields, lease: number, told: unknown): AttemptAnswer {
  const code = from.next();
  const at = from.number();
  switch (code) {
    case codes.OWNER: {
      const token = from.number();
      return { is: "owner", at, token, ttl: lease, already: false, waits: from.flag(), isTold: isTold(told) };
    }
    case codes.MINE: {
      const token = from.number();
      const ttl = from.ttl();
      const waits = from.flag();
      return { is: "owner", at, token, ttl, already: true, waits, isTold: isTold(from.next()) };
    }
    case codes.HELD: {
      const ttl = from.ttl();
      const place = from.number();
      const position = place < 0 ? null : place;
      const last = from.next();
      // Kinds whose wake-ups are public name the holder, and do not notify it of waiters.
      if (typeof last === "string") return { is: "held", at, ttl, position, flag: 0, holder: last };
      return { is: "held", at, ttl, position, flag: last === 1 || last === 2 ? last : 0 };
    }
    case codes.GONE:
      return { is: "gone", at };
    case codes.STALE:
      return { is: "stale", at };
    case codes.BLOCKED:
      return { is: "blocked", at };
  }
  throw from.unexpected();
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

const isTold = (digit: unknown): boolean => digit === 1 || digit === 2;

/** Of a release: a code, or a code and the last fencing token. */
export function decodeRelease(reply: unknown): ReleaseAnswer {
  if (reply === codes.RELEASED) return RELEASED;
  return whole(reply, (from) => ({ is: from.one(ENDINGS), clock: from.number(0) }));
}

const RELEASED: ReleaseAnswer = { is: "released", clock: 0 };

const ENDINGS: ReadonlyMap<unknown, ReleaseAnswer["is"]> = new Map([
  [codes.RELEASED, "released"],
  [codes.GONE, "gone"],
  [codes.TAKEN, "taken"],
]);

/** Of several releases in one command. */
export const decodeReleases = (reply: unknown): ReleaseAnswer[] =>
  whole(reply, (from) => {
    const clock = from.number();
    return from.each(() => ({ is: from.one(ENDINGS), clock }));
  });

/** Of a withdrawal that has nothing more to say. */
export const decodeLeft = (reply: unknown): "released" | "gone" => whole(reply, (from) => from.one(LEFT));

const LEFT: ReadonlyMap<unknown, "released" | "gone"> = new Map([
  [codes.RELEASED, "released"],
  [codes.GONE, "gone"],
]);

const RENEWALS: ReadonlyMap<unknown, RenewAnswer["is"]> = new Map([
  [codes.RENEWED, "renewed"],
  [codes.GONE, "gone"],
  [codes.TAKEN, "taken"],
]);

export const decodeRenewals = (reply: unknown): RenewAnswer[] =>
  whole(reply, (from) => from.each(readRenewal));

export const decodeRenewal = (reply: unknown): RenewAnswer => whole(reply, readRenewal);

export const readRenewal = (from: Fields): RenewAnswer => ({
  is: from.one(RENEWALS),
  ttl: from.ttl(),
  ...UNTOLD,
});

/** Of a renewal that reports neither waiters nor tokens. */
export const UNTOLD = { waits: null, at: 0, isTold: false } as const;

export const decodeStayRenewals = (reply: unknown): RenewAnswer[] =>
  whole(reply, (from) => {
    const at = from.number();
    return from.each(() => ({
      is: from.one(RENEWALS),
      ttl: from.ttl(),
      waits: from.flag(),
      at,
      isTold: isTold(from.next()),
    }));
  });

export const decodeRenewed = (code: unknown): RenewAnswer["is"] => whole(code, (from) => from.one(RENEWALS));

/** Of a kind without a queue. Its tokens, if any, are no times. */
export const decodeInspection = (reply: unknown): Inspected =>
  whole(reply, (from) => {
    const text = from.text();
    const has = { token: from.number() || null, remaining: from.ttl() };
    return inspected(text === "" ? null : holding(partyOf(text, null), null, has), null);
  });

/** Of the hand-off. */
export const decodeHandoffInspection = (reply: unknown): Inspected =>
  whole(reply, (from) => readSeen(from.number(), from));

/** Of a lock or an election. `now`: in µs, as tokens and tickets are. */
export function readSeen(now: number, from: Fields): Inspected {
  const text = from.text();
  const has = { token: from.number(), remaining: from.ttl() };
  const kept = from.number() === 2;
  const at = Math.floor(now / 1_000);
  const holder = text === "" ? null : holding(partyOf(text, has.token, now), at, has);
  const waiters = from.each(() => waiting(partyOf(from.text(), from.number(), now), at));
  return inspected(holder, waiters, at, kept);
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

/** A number alone: how many holds were ended by force, or how many clients received a message. */
export const decodeCount = (reply: unknown): number => whole(reply, (from) => from.number());

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

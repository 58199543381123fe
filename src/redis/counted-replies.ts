// Decodes the answers of the scripts of counted resources; lua/counted/ defines the order of the
// fields.
import type { HoldingParty, WaitingParty } from "../api/party.ts";
import { codes } from "./codes.generated.ts";
import { type Fields, tokenTime, whole } from "./fields.ts";
import { holding, partyOf, waiting } from "./party.ts";
import type { Placed, ReleaseAnswer } from "./replies.ts";

/**
 * Of an attempt to take units, or of a re-check. `more`: there are more grants than one script
 * makes.
 */
export type CountedAnswer = { readonly at: number; readonly more: boolean } & (
  | (Extract<Placed, { is: "owner" }> & { readonly units: number } & Other)
  /** `ttl`: ms until a unit may come back by itself. `told`: 2: some holders may be unused. */
  | (Extract<Placed, { is: "held" }> & Other)
  | { readonly is: "gone" }
  | { readonly is: "stale" }
  | { readonly is: "crowded" }
  /** Null: no client has set the number of permits. */
  | { readonly is: "differs"; readonly permits: number | null }
);

/** `setPermits` has stored this number, and the caller's code gives another one; 0: it does not. */
interface Other {
  readonly other: number;
}

/** Of a release or a leave. */
export interface CountedRelease extends ReleaseAnswer {
  readonly more: boolean;
}

/** Of a counted resource, for people. */
export interface CountedInspection {
  /** When it was seen, by the server's clock: ms since 1970. */
  readonly at: number;
  /** Null: no client has set a number. */
  readonly permits: number | null;
  readonly isSet: boolean;
  readonly used: number;
  readonly holders: readonly {
    /** Its hold as Redis has it, random bits included: not for people. */
    readonly hold: string;
    readonly party: HoldingParty;
    /** May it be idle? */
    readonly kept: boolean;
  }[];
  readonly waiters: readonly WaitingParty[];
  /** For a later `setPermits`, which must outrank all earlier ones. */
  readonly stamp: number;
}

/** Permits have none. */
const MODES: ReadonlyMap<unknown, "read" | "write" | null> = new Map([
  ["r", "read"],
  ["w", "write"],
  ["p", null],
]);

/**
 * `<hold>[+][ <label>]`: a prefix may contain any character but a space, and a hold ends with a
 * letter or digit.
 */
const HELD_BY = /^([^ ]*?)(\+?)( .*)?$/s;

/** Of an attempt with a lease of `lease` ms. */
export const decodeCounted = (reply: unknown, lease: number): CountedAnswer =>
  whole(reply, readCounted, lease);

function readCounted(from: Fields, lease: number): CountedAnswer {
  const code = from.next();
  const at = from.number();
  switch (code) {
    case codes.OWNER:
    case codes.MINE: {
      const token = from.token();
      const units = from.number();
      const waits = from.flag();
      const already = code === codes.MINE;
      const ttl = already ? from.number() : lease;
      const [more, isTold, other] = [from.flag(), from.flag(), from.number(0)];
      return { is: "owner", at, token, units, ttl, already, waits, more, isTold, other };
    }
    case codes.HELD: {
      const ttl = from.number();
      const place = from.number();
      const position = place < 0 ? null : place;
      const more = from.flag();
      const flag = from.number(0) === 2 ? 2 : 0;
      return { is: "held", at, ttl, position, more, flag, other: from.number(0) };
    }
    case codes.DIFFERS:
      return { is: "differs", at, permits: from.number() || null, more: from.flag() };
    case codes.GONE:
      return { is: "gone", at, more: from.flag() };
    case codes.STALE:
      return { is: "stale", at, more: false };
    case codes.CROWDED:
      return { is: "crowded", at, more: false };
  }
  throw from.unexpected();
}

/**
 * Of an attempt that took that many units in the common case: the answer is the time, which is also
 * the token.
 */
export function decodeTaken(reply: unknown, ttl: number, units: number): CountedAnswer {
  const at = tokenTime(reply);
  const usual = { already: false, waits: false, more: false, isTold: false, other: 0 } as const;
  return { is: "owner", at, token: at, units, ttl, ...usual };
}

const RELEASED: CountedRelease = { is: "released", clock: 0, more: false };

export function decodeCountedRelease(reply: unknown): CountedRelease {
  return reply === codes.RELEASED ? RELEASED : whole(reply, readRelease);
}

function readRelease(from: Fields): CountedRelease {
  const code = from.next();
  if (code === codes.RELEASED) return { is: "released", clock: 0, more: from.flag() };
  if (code !== codes.GONE) throw from.unexpected();
  const first = from.number();
  // The reply of a leave has no clock.
  return from.isOver
    ? { is: "gone", clock: 0, more: first === 1 }
    : { is: "gone", clock: first, more: from.flag() };
}

/** Of a yield: the place of the new hold; or, when nothing was queued, what became of the old one. */
export function decodeCountedYield(reply: unknown, lease: number): CountedAnswer | CountedRelease {
  const code = Array.isArray(reply) ? reply[0] : reply;
  const isOld = code === codes.RELEASED || code === codes.GONE;
  return isOld ? decodeCountedRelease(reply) : decodeCounted(reply, lease);
}

/** Of an advance: are more grants due than one script makes? */
export const decodeMore = (reply: unknown): boolean => whole(reply, (from) => from.flag());

/** How many holds were ended by force. */
export const decodeCountedForced = (reply: unknown): { readonly count: number; readonly more: boolean } =>
  whole(reply, (from) => ({ count: from.number(), more: from.flag() }));

/** Of `setPermits`. `isDone`: false = a later number is in force. */
export function decodeSetPermits(reply: unknown): {
  readonly isDone: boolean;
  readonly old: number | null;
  readonly used: number;
  readonly more: boolean;
} {
  return whole(reply, (from) => ({
    isDone: from.one(SET),
    old: from.number() || null,
    used: from.number(),
    more: from.flag(),
  }));
}

const SET: ReadonlyMap<unknown, boolean> = new Map([
  [codes.RELEASED, true],
  [codes.TAKEN, false],
]);

export const decodeCountedInspection = (reply: unknown): CountedInspection => whole(reply, readInspection);

function readInspection(from: Fields): CountedInspection {
  const now = from.number();
  const at = Math.floor(now / 1_000);
  return {
    at,
    permits: from.number() || null,
    isSet: from.flag(),
    used: from.number(),
    holders: from.list().each((row) => readHolder(row, now, at)),
    waiters: from.list().each((row) => readWaiter(row, now, at)),
    stamp: from.number(),
  };
}

function readHolder(row: Fields, now: number, at: number): CountedInspection["holders"][number] {
  const [, hold = "", mark, label = ""] = HELD_BY.exec(row.text()) ?? [];
  const mode = row.one(MODES);
  const units = row.number();
  const token = row.number();
  // Permits have no fencing tokens: other callers hold permits at the same time.
  const has = { remaining: row.number(), token: mode && token, units: unitsOf(units, mode), mode };
  return { hold, party: holding(partyOf(hold + label, token, now), at, has), kept: mark === "+" };
}

function readWaiter(row: Fields, now: number, at: number): WaitingParty {
  const [text, mode, units] = [row.text(), row.one(MODES), row.number()];
  row.next(); // the most units that it takes
  return waiting(partyOf(text, row.number(), now), at, unitsOf(units, mode), mode);
}

/** A writer has all units, a number that means nothing to people. */
const unitsOf = (units: number, mode: "read" | "write" | null): number => (mode ? 1 : units);

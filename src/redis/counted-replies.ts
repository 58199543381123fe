// What the scripts of counted resources answer, decoded: lua/counted/ says what stands where.
import { type HoldingParty, holding, partyOf, type WaitingParty, waiting } from "../party.ts";
import { codes } from "./codes.generated.ts";
import { fields, type ReleaseAnswer, unexpected } from "./replies.ts";

/** Of an attempt to take units, or to look again. `at` is the server's time in µs when the script ran. */
export type CountedAnswer =
  | {
      readonly is: "owner";
      readonly at: number;
      readonly token: number;
      readonly units: number;
      readonly ttl: number;
      readonly already: boolean;
      /** Does anybody stand in the queue? */
      readonly waits: boolean;
      readonly more: boolean;
      /** Is its client told when somebody begins to wait? */
      readonly isTold: boolean;
    }
  | {
      readonly is: "held";
      readonly at: number;
      /** In so many ms a unit may come back by itself. */
      readonly ttl: number;
      readonly position: number | null;
      readonly more: boolean;
      /** May one of the holders have nobody inside? */
      readonly mayBeIdle: boolean;
    }
  | { readonly is: "gone"; readonly at: number; readonly more: boolean }
  | { readonly is: "stale" | "crowded"; readonly at: number }
  /** Null: nobody has said how many permits there are. */
  | {
      readonly is: "differs";
      readonly at: number;
      readonly permits: number | null;
      readonly more: boolean;
    };

/** Of a release or a leave. `more`: there are more grants to be made than one script makes. */
export interface CountedRelease extends ReleaseAnswer {
  readonly more: boolean;
}

/** Of a counted resource, for people. */
export interface CountedInspection {
  /** When it was seen, by the server's clock: ms since 1970. */
  readonly at: number;
  /** Null: nobody has said a number. */
  readonly permits: number | null;
  readonly isSet: boolean;
  readonly used: number;
  readonly holders: readonly {
    /** Its hold as it stands in Redis, random bits included: not for people. */
    readonly hold: string;
    readonly party: HoldingParty;
    /** May it have nobody inside? */
    readonly kept: boolean;
  }[];
  readonly waiters: readonly WaitingParty[];
  /** For a `setPermits` that is to count behind all before. */
  readonly stamp: number;
}

/** Permits have none. */
const MODES: ReadonlyMap<unknown, "read" | "write" | null> = new Map([
  ["r", "read"],
  ["w", "write"],
  ["p", null],
]);

/** `<hold>[+][ <label>]`: a prefix may have any letter but a space, and a hold ends with none but letters and digits. */
const HELD_BY = /^([^ ]*?)(\+?)( .*)?$/s;

/** Of an attempt with a lease of so many ms. */
export function decodeCounted(reply: unknown, lease: number): CountedAnswer {
  const [code, micros, a, b, c, d, e] = fields(reply);
  const at = Number(micros);
  switch (code) {
    case codes.OWNER:
    case codes.MINE: {
      const already = code === codes.MINE;
      return {
        is: "owner",
        at,
        token: Number(a),
        units: Number(b),
        ttl: already ? Number(d) : lease,
        already,
        waits: c === 1,
        more: (already ? e : d) === 1,
        isTold: !already && e === 1,
      };
    }
    case codes.HELD:
      return {
        is: "held",
        at,
        ttl: Number(a),
        position: Number(b) < 0 ? null : Number(b),
        more: c === 1,
        mayBeIdle: d === 2,
      };
    case codes.DIFFERS:
      return { is: "differs", at, permits: Number(a) || null, more: b === 1 };
    case codes.GONE:
      return { is: "gone", at, more: a === 1 };
    case codes.STALE:
      return { is: "stale", at };
    case codes.CROWDED:
      return { is: "crowded", at };
  }
  throw unexpected(reply);
}

/** Of an attempt that took so many units on the common way: the answer is the time, which is the token too. */
export function decodeTaken(reply: unknown, ttl: number, units: number): CountedAnswer {
  const at = Number(reply);
  if (!(at > 0)) throw unexpected(reply);
  const usual = { already: false, waits: false, more: false, isTold: false } as const;
  return { is: "owner", at, token: at, units, ttl, ...usual };
}

const RELEASED: CountedRelease = { is: "released", clock: 0, more: false };

export function decodeCountedRelease(reply: unknown): CountedRelease {
  if (reply === codes.RELEASED) return RELEASED;
  const [code, first, second] = fields(reply);
  if (code === codes.RELEASED) return { is: "released", clock: 0, more: first === 1 };
  if (code !== codes.GONE) throw unexpected(reply);
  // A leave tells no clock.
  if (second === undefined) return { is: "gone", clock: 0, more: first === 1 };
  return { is: "gone", clock: Number(first) || 0, more: second === 1 };
}

/** Of a yield: where the new hold stands, or what became of the old one, when nothing was queued. */
export function decodeCountedYield(reply: unknown, lease: number): CountedAnswer | CountedRelease {
  const [code] = fields(reply);
  const isOld = code === codes.RELEASED || code === codes.GONE;
  return isOld ? decodeCountedRelease(reply) : decodeCounted(reply, lease);
}

/** Of `setPermits`. `isDone`: false = a later number stands. */
export function decodeSetPermits(reply: unknown): {
  readonly isDone: boolean;
  readonly old: number | null;
  readonly used: number;
  readonly more: boolean;
} {
  const [code, old, used, more] = fields(reply);
  if (code !== codes.RELEASED && code !== codes.TAKEN) throw unexpected(reply);
  return { isDone: code === codes.RELEASED, old: Number(old) || null, used: Number(used), more: more === 1 };
}

export function decodeCountedInspection(reply: unknown): CountedInspection {
  const [micros, permits, isSet, used, holds, queued, stamp] = fields(reply);
  const now = Number(micros);
  const at = Math.floor(now / 1_000);
  const holders = inRows(holds, 5).map(([text, word, units, token, remaining]) => {
    const [, hold = "", mark, label = ""] = HELD_BY.exec(String(text)) ?? [];
    const mode = modeOf(word);
    const has = {
      remaining: Number(remaining),
      // Permits fence nothing: others hold some at the same time.
      token: mode && Number(token),
      units: unitsOf(units, mode),
      mode,
    };
    return { hold, party: holding(partyOf(hold + label, Number(token), now), at, has), kept: mark === "+" };
  });
  const waiters = inRows(queued, 5).map(([text, word, units, , ticket]) => {
    const mode = modeOf(word);
    return waiting(partyOf(String(text), Number(ticket), now), at, unitsOf(units, mode), mode);
  });
  return {
    at,
    permits: Number(permits) || null,
    isSet: isSet === 1,
    used: Number(used),
    holders,
    waiters,
    stamp: Number(stamp),
  };
}

/** A writer has all the units that there are, which says nothing to people. */
const unitsOf = (units: unknown, mode: "read" | "write" | null): number => (mode ? 1 : Number(units));

function inRows(reply: unknown, length: number): unknown[][] {
  const all = fields(reply);
  return Array.from({ length: all.length / length }, (_, i) => all.slice(i * length, (i + 1) * length));
}

function modeOf(word: unknown): "read" | "write" | null {
  const mode = MODES.get(word);
  if (mode === undefined) throw unexpected(word);
  return mode;
}

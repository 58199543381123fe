// What the answers about counted resources say to the engine and to people.
import type { HoldingParty, WaitingParty } from "../api/party.ts";
import type { Answer } from "./codec.ts";
import { tokenTime } from "./fields.ts";
import type { countedLua as lua } from "./lua.generated.ts";
import { holding, partyOf, waiting } from "./party.ts";
import type { Placed } from "./replies.ts";

/** What scripts answer about a new hold, or one that waits. */
type PlaceReply =
  | Answer<typeof lua.acquire.form.replies>
  | { readonly is: "gone"; readonly at: number; readonly more: boolean };

/**
 * Of an attempt to take units, or of a re-check. `more`: there are more grants than one script
 * makes.
 */
export type CountedAnswer = { readonly at: number; readonly more?: boolean } & (
  | (Extract<Placed, { is: "owner" }> & { readonly units: number } & Other)
  /** `ttl`: ms until a unit may come back by itself. `told`: 2: some holders may be unused. */
  | (Extract<Placed, { is: "held" }> & Other)
  | Exclude<PlaceReply, { readonly is: "owner" | "mine" | "held" }>
);

/** `setPermits` has stored this number, and the caller's code gives another one; 0: it does not. */
interface Other {
  readonly other: number;
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

/** Of an attempt with a lease of `lease` ms. */
export function countedOf(answer: PlaceReply, lease: number): CountedAnswer {
  switch (answer.is) {
    case "owner": {
      const { is, at, token, units, waits, more, told: isTold = false, other = 0 } = answer;
      return { is, at, token, units, ttl: lease, already: false, waits, more, isTold, other };
    }
    case "mine": {
      const { at, token, units, ttl, waits, more } = answer;
      return { is: "owner", at, token, units, ttl, already: true, waits, more, isTold: false, other: 0 };
    }
    case "held": {
      const { is, at, ttl, place, more, idle, other = 0 } = answer;
      const position = place < 0 ? null : place;
      return { is, at, ttl, position, more, flag: idle === 2 ? 2 : 0, other };
    }
  }
  return answer;
}

/**
 * Of an attempt that took that many units in the common case: the answer is the time, which is also
 * the token.
 */
export function readTaken(reply: unknown, units: number): PlaceReply {
  const at = tokenTime(reply);
  return { is: "owner", at, token: at, units, waits: false, more: false };
}

/**
 * `<hold>[+][ <label>]`: a prefix may contain any character but a space, and a hold ends with a
 * letter or digit.
 */
const HELD_BY = /^([^ ]*?)(\+?)( .*)?$/s;

/** Permits have no mode. */
const MODES = { r: "read", w: "write", p: null } as const;

export function countedInspectionOf(seen: Answer<typeof lua.inspect.form.replies>): CountedInspection {
  const now = seen.at;
  const at = Math.floor(now / 1_000);
  const { permits, isSet, used, stamp } = seen;
  const holders = seen.holders.map(({ hold: text, mode: as, units, token, remaining }) => {
    const [, hold = "", mark, label = ""] = HELD_BY.exec(text) ?? [];
    const mode = MODES[as];
    // Permits have no fencing tokens: other callers hold permits at the same time.
    const has = { remaining, token: mode && token, units: unitsOf(units, mode), mode };
    return { hold, party: holding(partyOf(hold + label, token, now), at, has), kept: mark === "+" };
  });
  const waiters = seen.waiters.map(({ hold, mode, units, ticket }) =>
    waiting(partyOf(hold, ticket, now), at, unitsOf(units, MODES[mode]), MODES[mode]),
  );
  return { at, permits: permits || null, isSet, used, holders, waiters, stamp };
}

/** A writer has all units, a number that means nothing to people. */
const unitsOf = (units: number, mode: "read" | "write" | null): number => (mode ? 1 : units);

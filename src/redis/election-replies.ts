import type { Leader } from "../api/election.ts";
import { codes } from "./codes.generated.ts";
import { Fields } from "./fields.ts";
import { leaderOf } from "./party.ts";
import { type RenewAnswer, readRenewal } from "./replies.ts";
// What the scripts of elections answer, decoded: lua/election/ says what stands where.

/** What an observer is told. `ttl`: ms that the term lasts unless it is renewed; Infinity: no end is set. */
export interface Observed {
  /** Null: nobody leads, or the one that leads now has not proclaimed itself yet. */
  readonly leader: Leader | null;
  /** Does somebody lead? */
  readonly isLed: boolean;
  readonly ttl: number;
}

export function decodeObserved(reply: unknown): Observed {
  const from = new Fields(reply);
  const [token, ttl, number, text] = [from.number(), from.ttl(), from.number(), from.text()];
  if (token === 0) return { leader: null, isLed: false, ttl: 0 };
  const space = text.indexOf(" ");
  if (number === 0 || space < 0) return { leader: null, isLed: true, ttl };
  const leader = leaderOf(text.slice(0, space), from.text(), token);
  return { leader: { ...leader, value: text.slice(space + 1), token }, isLed: true, ttl };
}

/** Of a proclamation: it or a later one of this term stands, or the term is over. */
export const decodeProclaimed = (code: unknown): "stands" | "gone" | "taken" =>
  new Fields(code).one(PROCLAIMED);

const PROCLAIMED: ReadonlyMap<unknown, "stands" | "gone" | "taken"> = new Map([
  [codes.OWNER, "stands"],
  [codes.MINE, "stands"],
  [codes.GONE, "gone"],
  [codes.TAKEN, "taken"],
]);

/** Of the renewal of a term. `number`: of the proclamation that stands; 0: there is none any more. */
export function decodeTermRenewal(reply: unknown): { readonly answer: RenewAnswer; readonly number: number } {
  const from = new Fields(reply);
  return { answer: readRenewal(from), number: from.number() };
}

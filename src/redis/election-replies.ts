import type { Leader } from "../api/election.ts";
import { codes } from "./codes.generated.ts";
import { whole } from "./fields.ts";
import { leaderOf } from "./party.ts";
import { type RenewAnswer, readRenewal } from "./replies.ts";
// Decodes the answers of the scripts of elections; lua/election/ defines the order of the fields.

/**
 * What an observer receives. `ttl`: ms that the term lasts unless it is renewed; Infinity: it has
 * no end.
 */
export interface Observed {
  /** Null: there is no leader, or it has not proclaimed itself yet. */
  readonly leader: Leader | null;
  /** Is there a leader? */
  readonly isLed: boolean;
  readonly ttl: number;
}

export function decodeObserved(reply: unknown): Observed {
  const [token, ttl, number, text, label] = whole(
    reply,
    (from) => [from.number(), from.ttl(), from.number(), from.text(), from.text()] as const,
  );
  if (token === 0) return { leader: null, isLed: false, ttl: 0 };
  const space = text.indexOf(" ");
  if (number === 0 || space < 0) return { leader: null, isLed: true, ttl };
  const leader = leaderOf(text.slice(0, space), label, token);
  return { leader: { ...leader, value: text.slice(space + 1), token }, isLed: true, ttl };
}

/** Of a proclamation: it or a later one of this term is in force, or the term is over. */
export const decodeProclaimed = (code: unknown): "stands" | "gone" | "taken" =>
  whole(code, (from) => from.one(PROCLAIMED));

const PROCLAIMED: ReadonlyMap<unknown, "stands" | "gone" | "taken"> = new Map([
  [codes.OWNER, "stands"],
  [codes.MINE, "stands"],
  [codes.GONE, "gone"],
  [codes.TAKEN, "taken"],
]);

/** Of the renewal of a term. `number`: of the proclamation in force; 0: there is none any more. */
export const decodeTermRenewal = (
  reply: unknown,
): { readonly answer: RenewAnswer; readonly number: number } =>
  whole(reply, (from) => ({ answer: readRenewal(from), number: from.number() }));

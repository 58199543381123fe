// What the scripts of elections answer, decoded: lua/election/ says what stands where.
import { leaderOf, type Party } from "../party.ts";
import { codes } from "./codes.generated.ts";
import { decodeRenewal, decodeRenewed, fields, type RenewAnswer, ttl, unexpected } from "./replies.ts";

/** The leader of an election, as it has told Redis. Its `id` is that of its client. */
export interface Leader extends Party {
  /** What it has said of itself last: an address, mostly. */
  readonly value: string;
  /** The fencing token of its term: grows from term to term. */
  readonly token: number;
}

/** What an observer is told. `ttl`: ms that the term lasts unless it is renewed; Infinity: no end is set. */
export interface Observed {
  /** Null: nobody leads, or the one that leads now has not proclaimed itself yet. */
  readonly leader: Leader | null;
  /** Does somebody lead? */
  readonly isLed: boolean;
  readonly ttl: number;
}

export function decodeObserved(reply: unknown): Observed {
  const [word, left, number, rest, label] = fields(reply);
  const token = Number(word);
  if (token === 0) return { leader: null, isLed: false, ttl: 0 };
  const text = String(rest);
  const space = text.indexOf(" ");
  if (number === 0 || space < 0) return { leader: null, isLed: true, ttl: ttl(left) };
  const leader = leaderOf(text.slice(0, space), String(label), token);
  return {
    leader: { ...leader, value: text.slice(space + 1), token },
    isLed: true,
    ttl: ttl(left),
  };
}

/** Of a proclamation: it or a later one of this term stands, or the term is over. */
export function decodeProclaimed(code: unknown): "stands" | "gone" | "taken" {
  if (code === codes.OWNER || code === codes.MINE) return "stands";
  const is = decodeRenewed(code);
  if (is === "renewed") throw unexpected(code);
  return is;
}

/** Of the renewal of a term. `number`: of the proclamation that stands; 0: there is none any more. */
export function decodeTermRenewal(reply: unknown): { readonly answer: RenewAnswer; readonly number: number } {
  const [code, left, number] = fields(reply);
  return { answer: decodeRenewal([code, left]), number: Number(number) };
}

import { expect } from "vitest";
import { check } from "./checker/index.ts";
import type { Event, LockKind, Told } from "./history/events.ts";

// Small histories for tests, by hand: about one lock, "it", with times in ms.

export type Line = [at: number, by: string, told: Told];
type Asked = Partial<Extract<Told, { is: "ask" }>>;

export interface Held extends Asked {
  /** When it asks; 0 when left out. */
  readonly at?: number;
  /** Of its unlock. */
  readonly error?: string;
  /** ms to its deadline when it begins. */
  readonly left?: number;
}

export const asks = (at: number, by: string, asked: Asked = {}): Line => [
  at,
  by,
  { is: "ask", call: 1, lock: "it", kind: "lock", wait: null, how: "", ...asked },
];

/** Asks, and holds from `from` to `to`. Its lines are: ask, lease, unlock, unlocked. */
export function held(
  by: string,
  kind: LockKind,
  token: number,
  [from, to]: readonly [number, number],
  { at = 0, error, left = 10_000, call = 1, ...more }: Held = {},
): Line[] {
  return [
    asks(at, by, { call, kind, ...more }),
    [from, by, { is: "lease", call, token, left }],
    [to, by, { is: "unlock", call, held: left > 0 }],
    [to + 1, by, { is: "unlocked", call, error: error ?? null }],
  ];
}

export const seen = (at: number, by: string, isHeld: boolean, left = 0): Line => [
  at,
  by,
  { is: "seen", call: 1, after: "a while", held: isHeld, left },
];
export const lost = (at: number, by: string, reason: string): Line => [
  at,
  by,
  { is: "lost", call: 1, reason },
];
const director = (at: number, told: Told): Line => [at, "director", told];
export const dead = (at: number, victim: string, meant = true): Line =>
  director(at, { is: "dead", victim, meant, how: "killed" });
export const stopped = (from: number, to: number, victim: string): Line[] => [
  director(from, { is: "stopped", victim }),
  director(to, { is: "continued", victim }),
];
export const fault = (at: number, kind: string): Line =>
  director(at, { is: "fault", number: 1, kind, detail: "" });
/** `from`, `to`: the tokens, in the server's µs, between which it has forgotten. */
export const forgot = (at: number, since: number, [from, to]: readonly [number, number] = [1, 2]): Line =>
  director(at, { is: "forgot", since: since * 1_000, from, to, what: "test" });

export function history(...lines: Line[]): Event[] {
  const events = lines.map(([at, by, told]) => ({ at: at * 1_000, by, ...told }) as Event);
  return events.sort((one, other) => one.at - other.at);
}

/** This history breaks these rules, and no others. */
export const breaks = (rules: string | readonly string[], ...lines: Line[]): void =>
  expect(check(history(...lines)).map(({ rule }) => rule)).toEqual([rules].flat());

/** This history breaks no rule. */
export const isSound = (...lines: Line[]): void => breaks([], ...lines);

import type { Event } from "../history/events.ts";
import { type Call, callKey } from "./story.ts";

/** Something that must not happen, at a moment of the history. */
export interface Violation {
  readonly rule: string;
  readonly what: string;
  readonly at: number;
  /** The calls that took part. */
  readonly calls: readonly Call[];
}

/** A call as a violation names it: "2.1#17". */
export const nameOf = ({ by, number }: Call): string => `${by}#${number}`;

/** µs as ms for people. */
export const ms = (micros: number): string => `${(micros / 1_000).toFixed(3)} ms`;

/** How many other events about the same lock are shown before and after the moment. */
const BEFORE = 20;
const AFTER = 8;

/**
 * The violation and what happened around it, a line an event, ms from its moment; ">" marks those
 * who took part.
 */
export function excerpt(violation: Violation, events: readonly Event[]): string {
  const locks = new Map<string, string>();
  for (const event of events) if (event.is === "ask") locks.set(callKey(event.by, event.call), event.lock);
  const keyOf = (event: Event): string => ("call" in event ? callKey(event.by, event.call) : "");
  const actors = new Set(violation.calls.map((call) => callKey(call.by, call.number)));
  const about = new Set(violation.calls.map(({ lock }) => lock));
  const begin = Math.min(violation.at, ...violation.calls.map(({ asked }) => asked));

  // That nothing has changed is no news.
  const isDull = (event: Event): boolean => event.is === "seen" && event.held && event.after === "a while";
  const isActor = (event: Event): boolean => actors.has(keyOf(event)) && !isDull(event);
  const isNews = (event: Event): boolean => event.by === "director" && event.at >= begin - 1_000_000;
  const isAbout = (event: Event): boolean => about.has(locks.get(keyOf(event)) ?? "") && !isDull(event);
  const related = events.filter(isAbout);
  const middle = related.findLastIndex(({ at }) => at <= violation.at);
  const near = new Set(related.slice(Math.max(0, middle - BEFORE), middle + AFTER));
  const isShown = (event: Event): boolean =>
    near.has(event) || (event.at <= violation.at + 1_000_000 && (isActor(event) || isNews(event)));

  const lines = events.filter(isShown).map((event) => {
    const mark = actors.has(keyOf(event)) ? ">" : " ";
    const time = ((event.at - violation.at) / 1_000).toFixed(3).padStart(12);
    return `${mark}${time}  ${describe(event)}`;
  });
  return [`${violation.rule.toUpperCase()}: ${violation.what}`, ...lines].join("\n");
}

function describe({ at: _, by, is, ...rest }: Event): string {
  const { call, ...details } = rest as Record<string, unknown>;
  const who = call === undefined ? by : `${by}#${call}`;
  const told = Object.entries(details).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : round(value)}`,
  );
  return `${who.padEnd(10)} ${is.padEnd(9)} ${told.join(" ")}`;
}

const round = (value: unknown): string =>
  typeof value === "number" && !Number.isInteger(value) ? value.toFixed(1) : String(value);

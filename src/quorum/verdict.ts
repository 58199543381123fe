import { between } from "../util/random.ts";
import { firstFree, majorityHolder } from "./holders.ts";
import type { Vote } from "./node-scripts.ts";
import type { Quorum, Tally } from "./votes.ts";

export type Granted = Extract<Vote, { is: "owner" }>;

/** What the votes decide. `ttl`: ms after which it is worth another try. `isSplit`: nobody has a majority. `holder`: all that are written down. */
export type Verdict =
  | { readonly is: "owner"; readonly granted: readonly Granted[] }
  | { readonly is: "held"; readonly ttl: number; readonly isSplit: boolean; readonly holder: string };

/** As soon as it is certain; undefined: not yet. `retryDelay`: the longest pause in ms after a split vote. */
export function verdict(
  quorum: Quorum,
  { answers, pending }: Tally<Vote>,
  retryDelay: number,
): Verdict | undefined {
  const granted = answers.filter((vote) => vote.is === "owner");
  if (quorum.isMajority(granted.length)) return { is: "owner", granted };
  const held = answers.filter((vote) => vote.is === "held");
  // "Held" is only said when a majority was heard; with fewer the lock is not busy but unavailable.
  const isHeard = quorum.isMajority(granted.length + held.length);
  const free = granted.length + pending;
  if (!isHeard || quorum.isMajority(free)) return undefined;
  const { majority } = quorum;
  const holder = [...new Set(held.map((vote) => vote.holder))].sort().join(" ");
  if (majorityHolder(held, majority) !== null)
    return { is: "held", ttl: firstFree(held, free, majority), isSplit: false, holder };
  // Somebody may hold it by a node that was not heard.
  const isSplit = majorityHolder(held, majority - quorum.unheard(answers)) === null;
  // Each caller comes back after a time of its own, so that one of them comes back alone.
  return { is: "held", ttl: between(0, retryDelay), isSplit, holder };
}

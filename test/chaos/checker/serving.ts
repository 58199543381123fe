import { PERMITS } from "../arenas/arena.ts";
import { LONGEST_LEASE } from "../settings.ts";
import { permitsOf } from "./permits.ts";
import type { Call, Story } from "./story.ts";
import { roomOf, unitsOf } from "./units.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** ms that what would fit may wait: less than until its own next look, which would find it in any case. */
const PATIENCE = 900;
/** ms for a command whose answer nobody waits for; and in which callers may come to the queue in another order than they asked. */
const SOON = 500;
/** ms after a fault until its effects are over. */
const SETTLED = 7_000;
/** ms after its first call in which a process connects, also on a busy machine. */
const CONNECTED = 1_500;
/** ms behind its death in which what a process had sent is executed. */
const LAST_WORDS = 100;
/** What this does to a worker is known: for how long its holds may live. */
const KNOWN = "kill";

interface Span {
  readonly from: number;
  readonly to: number;
  readonly units: number;
}

/** While nothing is wrong but that processes die, what fits beside all that are there, and before it, is given at once. */
export function serving(story: Story): Violation[] {
  const shared = story.calls.filter(
    ({ kind }) => kind === "permit" || kind === "readLock" || kind === "writeLock",
  );
  const wrong = story.troubles
    .filter(({ kind }) => !kind.startsWith(KNOWN))
    .map(({ from, to }) => ({ from, to: to + SETTLED * 1_000, units: Number.POSITIVE_INFINITY }));
  return shared.flatMap((call) => {
    const end = endOf(call, story);
    const chance = { from: call.asked, to: end, units: roomOf(call.kind) - unitsOf(call) };
    // Most callers waited while something was wrong: they need no look at all others.
    if (longestRoom(chance, wrong) <= PATIENCE * 1_000) return [];
    const others = shared.filter((other) => other !== call && other.lock === call.lock && other.asked < end);
    const spans = others.flatMap((other) => taken(other, call, story));
    const longest = longestRoom(chance, [
      ...wrong,
      ...unreached(call, story),
      ...lowered(call, story),
      ...spans,
    ]);
    if (longest <= PATIENCE * 1_000) return [];
    const what = `${nameOf(call)} waited ${ms(longest)} for ${call.lock}, which had room for it`;
    return [{ rule: "what fits is given", what, at: end, calls: [call] }];
  });
}

/**
 * While its process may not reach Redis: before its first answer, for a time in which it connects on a busy machine too, and while
 * another of its calls waited that was refused.
 */
function unreached({ by }: Call, { calls }: Story): Span[] {
  const units = Number.POSITIVE_INFINITY;
  const own = calls.filter((other) => other.by === by);
  const answers = own.flatMap(({ answered }) => (answered && answered.with !== "error" ? answered.at : []));
  const refused = own.flatMap(({ asked, answered }) =>
    answered?.with === "error" ? { from: asked, to: answered.at, units } : [],
  );
  const begun = Math.min(...own.map(({ asked }) => asked));
  return [{ from: begun, to: Math.min(begun + CONNECTED * 1_000, ...answers), units }, ...refused];
}

/** When there may have been fewer permits than by the code. */
const lowered = ({ kind, lock }: Call, story: Story): Span[] =>
  kind === "permit"
    ? permitsOf(story, lock)
        .filter(({ permits }) => permits < PERMITS)
        .map(({ permits, from, to }) => ({ from, to: to + SOON * 1_000, units: PERMITS - permits }))
    : [];

/** When it had not to wait any more. */
const endOf = ({ by, answered, aborted }: Call, { lives, over }: Story): number =>
  Math.min(answered?.at ?? over, aborted ?? over, lives.get(by)?.dead?.at ?? over);

/** The longest time, in µs, for which these spans leave so many units. */
function longestRoom({ from, to, units }: Span, all: readonly Span[]): number {
  const spans = all.filter((span) => span.to > from && span.from < to);
  const times = [from, ...spans.flatMap((span) => [span.from, span.to]), to]
    .filter((time) => time >= from && time <= to)
    .sort((one, other) => one - other);
  let longest = 0;
  let since: number | null = null;
  for (const [place, at] of times.entries()) {
    const used = spans.reduce((sum, span) => (span.from <= at && span.to > at ? sum + span.units : sum), 0);
    since = used <= units ? (since ?? at) : null;
    if (since !== null) longest = Math.max(longest, (times[place + 1] ?? at) - since);
  }
  return longest;
}

/** When another call has, or may have, what this one wants; or is before it. */
function taken(other: Call, call: Call, { lives, over }: Story): Span[] {
  const { hold, answered, asked } = other;
  const from = asked < call.asked + SOON * 1_000 ? asked : hold?.from;
  if (from === undefined) return [];
  const dead = lives.get(other.by)?.dead?.at;
  const lease = (other.lease ?? LONGEST_LEASE) * 1_000;
  const soon = SOON * 1_000;
  const units = unitsOf(other);
  if (hold) {
    const { unlocked, deadline } = hold;
    if (unlocked?.error === null) return [{ from, to: unlocked.at, units }];
    if (dead !== undefined) return [{ from, to: dead + lease + LAST_WORDS * 1_000, units }];
    return [{ from, to: Math.max(deadline, unlocked?.at ?? over) + lease + soon, units }];
  }
  if (answered) return [{ from, to: answered.at + soon, units }];
  return [{ from, to: dead === undefined ? over : dead + lease + LAST_WORDS * 1_000, units }];
}

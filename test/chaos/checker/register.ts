import { LONGEST_LEASE } from "../settings.ts";
import { mostPermits, permitsOf } from "./permits.ts";
import type { Hold, Story } from "./story.ts";
import { roomOf, unitsOf } from "./units.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/** µs: times are whole, so claims that share less prove nothing. */
const GRAIN = 1;

/** Between its first and its last claim a process said that it holds. A lease that has ended never says so again. */
interface Claimed {
  readonly hold: Hold;
  readonly first: number;
  readonly last: number;
}

/**
 * A register of claims on one clock. Each process reads the machine's monotonic clock right before its lease says "held", and
 * writes that down. Two such stretches of a lock that overlap are a proof by themselves: it needs no word of a server, no token, no
 * deadline and no wall clock. `exclusion` finds more, because a holder counts on its lock before and after its claims; but it
 * believes what leases say of their deadlines.
 */
export function register(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) => {
    const most = mostPermits(permitsOf(story, lock), Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
    const claimed = holds
      .flatMap((hold): Claimed[] => (hold.claims ? [{ hold, ...hold.claims }] : []))
      .sort((one, other) => one.first - other.first);
    let inside: Claimed[] = [];
    return claimed.flatMap((one) => {
      inside = inside.filter(({ last }) => last - one.first >= GRAIN);
      const all = [...inside.filter(({ first }) => one.last - first >= GRAIN), one];
      inside.push(one);
      const { kind } = one.hold.call;
      const used = all.reduce((sum, { hold }) => sum + unitsOf(hold.call), 0);
      if (used <= (kind === "permit" ? most : roomOf(kind)) || wasForgotten(story, one.first)) return [];
      return [overlap(lock, all)];
    });
  });
}

function overlap(lock: string, all: readonly Claimed[]): Violation {
  const at = Math.max(...all.map(({ first }) => first));
  const both = ms(Math.min(...all.map(({ last }) => last)) - at);
  const names = all
    .map(({ hold, first, last }) => `${nameOf(hold.call)} from ${first} to ${last}`)
    .join(", ");
  const what = `claims of ${lock} overlap for ${both} on the monotonic clock, in µs: ${names}`;
  return { rule: "monotonic register", what, at, calls: all.map(({ hold }) => hold.call) };
}

/** What a server forgot it may give to others, until the last lease that it forgot is over. */
const wasForgotten = ({ forgettings }: Story, at: number): boolean =>
  forgettings.some((one) => at >= one.since && at <= one.at + LONGEST_LEASE * 1_000);

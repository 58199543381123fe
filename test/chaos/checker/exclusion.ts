import { PASSED } from "../settings.ts";
import { allows, mostUnits, taken, takenBy, unitsOf } from "./allows.ts";
import { Forgotten, GRAIN, mayBeForgotten, wasOver } from "./excuses.ts";
import type { Hold, Story } from "./story.ts";
import { ms, nameOf, type Violation } from "./violation.ts";

/**
 * Those who count on a lock at the same time never take more units than there are. Where callers set
 * the number, that is the largest one since the first of them asked.
 */
export function exclusion(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) => {
    const forgotten = new Forgotten(story, holds);
    const numbers = holds[0] ? unitsOf(story, holds[0].call) : [];
    let inside: Hold[] = [];
    return holds.flatMap((hold) => {
      inside = inside.filter(({ until }) => until > hold.from);
      if (wasOver(hold)) return [];
      const all = [...inside.filter((other) => !forgotten.isBetween(other, hold)), hold];
      inside.push(hold);
      const first = Math.min(...all.map(({ call }) => call.asked));
      const units = mostUnits(numbers, first - PASSED * 1_000, hold.from);
      return takenBy(all) > units ? [tooMany(lock, hold, all, units)] : [];
    });
  });
}

function tooMany(lock: string, last: Hold, all: readonly Hold[], units: number): Violation {
  const told = { at: last.from, calls: all.map(({ call }) => call) };
  if (allows(last.call).model === "semaphore") {
    const names = all.map(({ call }) => `${nameOf(call)} (${taken(call)})`).join(", ");
    const what = `${takenBy(all)} permits of ${lock} were held, of ${units}: ${names}`;
    return { rule: "enough permits", what, ...told };
  }
  const both = ms(Math.min(...all.map(({ until }) => until)) - last.from);
  const names = all.map(({ call, token }) => `${nameOf(call)} with token ${token}`).join(" and ");
  const what = `${all.length === 2 ? "two" : all.length} holders of ${lock} for ${both}: ${names}`;
  return { rule: "one holder", what, ...told };
}

/**
 * Between its first and its last claim a process said that it holds. A lease that has ended never
 * says so again.
 */
interface Claimed {
  readonly hold: Hold;
  readonly first: number;
  readonly last: number;
}

/**
 * A register of claims on one clock. Each process reads the machine's monotonic clock right before
 * its lease says "held", and writes that down. Two such stretches of a lock that overlap are a proof
 * by themselves: it needs no word of a server, no token, no deadline and no wall clock. `exclusion`
 * finds more, because a holder counts on its lock before and after its claims; but it believes what
 * leases say of their deadlines.
 */
export function register(story: Story): Violation[] {
  return [...story.holds].flatMap(([lock, holds]) => {
    const numbers = holds[0] ? unitsOf(story, holds[0].call) : [];
    const units = Math.max(...numbers.map(({ units }) => units));
    const claimed = holds
      .flatMap((hold): Claimed[] => (hold.claims ? [{ hold, ...hold.claims }] : []))
      .sort((one, other) => one.first - other.first);
    let inside: Claimed[] = [];
    return claimed.flatMap((one) => {
      inside = inside.filter(({ last }) => last - one.first >= GRAIN);
      const all = [...inside.filter(({ first }) => one.last - first >= GRAIN), one];
      inside.push(one);
      if (takenBy(all.map(({ hold }) => hold)) <= units) return [];
      return mayBeForgotten(story, { from: one.first, to: one.first }) ? [] : [overlap(lock, all)];
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

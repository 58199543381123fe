import { setTimeout as pause } from "node:timers/promises";
import type { Listed } from "../../index.ts";
import { Glob, linkTo, prefixOf, showParty } from "../../inside.ts";
import { visible } from "../../util/visible.ts";
import { Deadlocks } from "../ui/deadlocks.ts";
import type { ShownCircle } from "../ui/shown.ts";
import type { Connected } from "./connection.ts";
import { lookAt } from "./look.ts";
import type { Output } from "./output.ts";

/**
 * ms in which a deadlock is proven, unless its processes do not run: each caller renews its note
 * every second, and the second renewal proves it.
 */
const PROOF = 5_000;
/** Between two reads of the notes, in ms. */
const PAUSE = 250;
const UNPROVEN = "callers noted one, but did not confirm it in time";

type Named = Pick<Listed, "kind" | "name">;

interface FoundDeadlock {
  /** Each caller with the lock that it holds and the lock that it waits for, in one sentence. */
  readonly text: string;
  /** The same, one line for each caller. */
  readonly links: readonly string[];
  readonly locks: readonly Named[];
}

/** The known deadlocks. */
export interface KnownDeadlocks {
  readonly found: readonly FoundDeadlock[];
  /** Why there may be more, in a sentence; null: there are no more. */
  readonly missing: string | null;
}

/** The deadlocks that a command reports. Its methods never reject. */
export class DeadlockReport {
  readonly #connected: Connected;
  readonly #isWanted: (lock: Named) => boolean;
  readonly #deadlocks: Deadlocks | null;

  /** `isWanted`: only deadlocks with such a lock are reported. */
  constructor(connected: Connected, isWanted: (lock: Named) => boolean = () => true) {
    const link = linkTo(connected.redis);
    this.#connected = connected;
    this.#isWanted = isWanted;
    this.#deadlocks = link && new Deadlocks(link, prefixOf(connected.locks));
  }

  /** For a command that reads once. It takes 2 s or more only if callers note a deadlock. */
  async once(): Promise<KnownDeadlocks> {
    const end = performance.now() + PROOF;
    let known = await this.look();
    while (this.#deadlocks?.isUnsure && performance.now() < end) {
      await pause(PAUSE);
      known = await this.look();
    }
    if (this.#deadlocks?.isUnsure) return { ...known, missing: unknown(known.found.length > 0, UNPROVEN) };
    return known;
  }

  /** For a command that reads repeatedly: a deadlock is reported when two reads show it. */
  async look(): Promise<KnownDeadlocks> {
    const deadlocks = this.#deadlocks;
    if (!deadlocks) return { found: [], missing: unknown(false, "this connection cannot read them") };
    try {
      await deadlocks.refresh();
      const { locks } = this.#connected;
      const seen = await Promise.all(deadlocks.locks.map(({ kind, name }) => lookAt(locks, name, kind)));
      const found = deadlocks
        .among(seen.flat())
        .filter(({ cycle }) => cycle.some(this.#isWanted))
        .map(foundOf);
      const { trouble } = deadlocks;
      return { found, missing: trouble === null ? null : unknown(found.length > 0, trouble) };
    } catch (error) {
      return { found: [], missing: unknown(false, error instanceof Error ? error.message : String(error)) };
    }
  }
}

/** To stderr: the data that other programs read from stdout is about locks alone. */
export function sayDeadlocks({ found, missing }: KnownDeadlocks, output: Output): void {
  for (const { text } of found) output.say(text);
  if (missing !== null) output.say(missing);
}

/** The locks that a command lists. */
export const matching =
  (match: string | undefined, kind: Listed["kind"] | undefined) =>
  (lock: Named): boolean =>
    (kind === undefined || kind === lock.kind) && (match === undefined || new Glob(match).matches(lock.name));

const unknown = (isMore: boolean, why: string): string =>
  `${isMore ? "More deadlocks" : "Deadlocks"} are not known: ${why.replace(/\.$/, "")}.`;

function foundOf({ isSure, cycle }: ShownCircle): FoundDeadlock {
  const title = isSure ? "Deadlock" : "Possible deadlock, which other callers may end";
  const links = cycle.map(
    (one) => `${showParty(one.holder)} holds ${lockOf(one)} and waits for ${lockOf(one.waitsFor)}`,
  );
  return { text: `${title}: ${links.join("; ")}.`, links, locks: cycle };
}

const lockOf = ({ kind, name }: Named): string =>
  kind === "lock" ? visible(name) : `${visible(name)} (${kind})`;

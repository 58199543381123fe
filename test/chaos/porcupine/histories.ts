import { mostPermits, permitsOf } from "../checker/permits.ts";
import type { Hold, Story } from "../checker/story.ts";
import { unitsOf } from "../checker/units.ts";
import { LONGEST_LEASE, PASSED } from "../settings.ts";

/** An operation as `main.go` reads it. Times are µs; without `return` it is pending to the end of the history. */
interface Operation {
  readonly do: "acquire" | "end";
  readonly hold: number;
  readonly client: number;
  readonly token: number;
  readonly reads: boolean;
  readonly handsOn: boolean;
  readonly units: number;
  readonly room: number;
  readonly call: number;
  readonly return?: number | undefined;
}

export interface History {
  readonly name: string;
  readonly model: "lock" | "readWrite" | "semaphore";
  readonly operations: readonly Operation[];
  /** The hold with number 1, 2 … */
  readonly holds: readonly Hold[];
}

/** Porcupine keeps what it has tried, with a bit for each operation: longer histories are cut. */
const MOST_HOLDS = 5_000;

/**
 * A history for each lock, of the operations that a caller has seen:
 *
 * - **acquire**, from its question to its lease. One that had no lease is left out: it has seen nothing that a model could deny.
 * - **end**, from the moment in which the holder counts on its lock no longer (its unlock begins, it is told the loss, its lease is
 *   over, its process dies) to the answer of its unlock. Without an answer, because its process was killed or its lease was lost,
 *   the end is pending: Redis may have the hold for as long as it likes, and no other holder may come before the end begins.
 *
 * A pair of both may be left out of any history without making it wrong. So what may have met a server that had forgotten is left
 * out, from its loss until the longest lease is over; the project's own checker judges that.
 */
export function histories(story: Story): History[] {
  return [...story.holds].flatMap(([lock, holds]) => {
    const kept = holds.filter((hold) => hold.until > hold.from && !mayBeForgotten(story, hold));
    return cut(kept).map((part, place, all) => {
      const name = all.length > 1 ? `${lock}, part ${place + 1}` : lock;
      return { name, holds: part, ...told(story, lock, part) };
    });
  });
}

function mayBeForgotten({ forgettings }: Story, { call, until }: Hold): boolean {
  return forgettings.some(({ since, at }) => until >= since && call.asked <= at + LONGEST_LEASE * 1_000);
}

/** Each part begins with those that are still inside, and with the one that had the largest token. */
function cut(holds: readonly Hold[]): Hold[][] {
  const parts: Hold[][] = [];
  for (let from = 0; from < holds.length; from += MOST_HOLDS) {
    const part = holds.slice(from, from + MOST_HOLDS);
    const before = holds.slice(0, from);
    const last = before.reduce<Hold | undefined>((a, b) => (a && a.token > b.token ? a : b), undefined);
    const begin = part[0]?.from ?? 0;
    parts.push([...before.filter((hold) => hold.until > begin || hold === last), ...part]);
  }
  return parts;
}

function told(story: Story, lock: string, holds: readonly Hold[]): Pick<History, "model" | "operations"> {
  const kinds = new Set(holds.map(({ call }) => call.kind));
  const model = kinds.has("permit")
    ? "semaphore"
    : kinds.has("readLock") || kinds.has("writeLock")
      ? "readWrite"
      : "lock";
  const numbers = permitsOf(story, lock);
  // A writer that became a reader has handed its token on to the readers beside it.
  const handedOn = new Set(holds.flatMap(({ call, token }) => (call.writer === undefined ? [] : [token])));
  const clients = [...story.lives.keys()];
  const operations = holds.flatMap((hold, place): Operation[] => {
    const { call, from, until, token, unlocked } = hold;
    const same = {
      hold: place + 1,
      client: clients.indexOf(call.by),
      // That of a run once per interval is a time, and goes back with the server's clock.
      token: call.kind === "once" ? 0 : token,
      reads: call.kind === "readLock",
      handsOn: handedOn.has(token),
      units: unitsOf(call),
      room: model === "semaphore" ? mostPermits(numbers, call.asked - PASSED * 1_000, from) : 0,
    };
    return [
      { do: "acquire", call: call.asked, return: from, ...same },
      {
        do: "end",
        call: Math.floor(until),
        return: unlocked?.error === null ? unlocked.at : undefined,
        ...same,
      },
    ];
  });
  return { model, operations };
}

import { allows, handedOn, mostUnits, taken, unitsOf } from "../checker/allows.ts";
import { mayBeForgotten, wasOver } from "../checker/excuses.ts";
import type { Hold, Story } from "../checker/story.ts";
import { PASSED } from "../settings.ts";

/**
 * An operation as `main.go` reads it. Times are µs; without `return` it is pending to the end of
 * the history.
 */
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
  readonly model: ReturnType<typeof allows>["model"];
  readonly operations: readonly Operation[];
  /** The hold with number 1, 2 … */
  readonly holds: readonly Hold[];
}

/** Porcupine keeps what it has tried, with a bit for each operation: longer histories are cut. */
const MOST_HOLDS = 5_000;

/**
 * A history for each lock, of the operations that a caller has seen:
 *
 * - **acquire**, from its question to its lease. One that had no lease is left out: it has seen
 *   nothing that a model could deny.
 * - **end**, from the moment in which the holder counts on its lock no longer (its unlock begins,
 *   it is told the loss, its lease is over, its process dies) to the answer of its unlock. Without
 *   an answer, because its process was killed or its lease was lost, the end is pending: Redis may
 *   have the hold for as long as it likes, and no other holder may come before the end begins.
 *
 * A pair of both may be left out of any history without making it wrong. So what may have met a
 * server that had forgotten is left out, from its loss until the longest lease is over; the
 * project's own checker judges that.
 */
export function histories(story: Story): History[] {
  return [...story.holds].flatMap(([lock, holds]) => {
    // Of all: the writer that became a reader may be left out, and others read with its token.
    const shared = handedOn(holds);
    const kept = holds.filter(
      (hold) => !wasOver(hold) && !mayBeForgotten(story, { from: hold.call.asked, to: hold.until }),
    );
    return cut(kept).map((part, place, all) => {
      const name = all.length > 1 ? `${lock}, part ${place + 1}` : lock;
      return { name, holds: part, ...told(story, part, shared) };
    });
  });
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

/** `shared`: the tokens of writers that became readers. */
function told(
  story: Story,
  holds: readonly Hold[],
  shared: ReadonlySet<number>,
): Pick<History, "model" | "operations"> {
  const [one] = holds;
  const numbers = one ? unitsOf(story, one.call) : [];
  const clients = [...story.lives.keys()];
  const operations = holds.flatMap((hold, place): Operation[] => {
    const { call, from, until, token, unlocked } = hold;
    const { tokens } = allows(call);
    const same = {
      hold: place + 1,
      client: clients.indexOf(call.by),
      // A time goes back with the server's clock.
      token: tokens === "times" ? 0 : token,
      reads: tokens === "shared",
      handsOn: shared.has(token),
      units: taken(call),
      room: mostUnits(numbers, call.asked - PASSED * 1_000, from),
    };
    const end = unlocked?.error === null ? unlocked.at : undefined;
    return [
      { do: "acquire", call: call.asked, return: from, ...same },
      { do: "end", call: Math.floor(until), return: end, ...same },
    ];
  });
  return { model: one ? allows(one.call).model : "lock", operations };
}

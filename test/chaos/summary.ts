import type { Event } from "./history/events.ts";
import type { Outcome } from "./run.ts";

/** What happened in a run, in a few lines. */
export function summary({ events, faults }: Outcome): string {
  const grants = countBy(events, (event) => (event.is === "lease" ? "all" : null)).get("all") ?? 0;
  const ends = countBy(events, (event) =>
    event.is === "failed"
      ? head(event.error)
      : event.is === "busy"
        ? "busy"
        : event.is === "got"
          ? "got a result"
          : null,
  );
  const losses = countBy(events, (event) => (event.is === "lost" ? head(event.reason) : null));
  const unlocks = countBy(events, (event) =>
    event.is === "unlocked" && event.error ? head(event.error) : null,
  );
  const deaths = countBy(events, (event) => (event.is === "dead" ? event.how : null));
  const forgotten = countBy(events, (event) => (event.is === "forgot" ? event.what : null));
  const steps = countBy(events, (event) => (event.is === "clock step" ? "the machine's clock" : null));
  return [
    line("grants", new Map([["", grants]])),
    line("calls without a lease", ends),
    line("losses told", losses),
    line("unlocks that failed", unlocks),
    line("locks kept", kept(events), kept(events).get("") ?? 0),
    line("faults", faults),
    line("dead workers", deaths),
    line("data forgotten", forgotten),
    line("clock steps", steps),
  ].join("\n");
}

function countBy(events: readonly Event[], key: (event: Event) => string | null): Map<string, number> {
  const counts = new Map<string, number>();
  for (const event of events) {
    const one = key(event);
    if (one !== null) counts.set(one, (counts.get(one) ?? 0) + 1);
  }
  return counts;
}

/** What became of kept locks, as workers told it that could. */
function kept(events: readonly Event[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const event of events) {
    if (event.is !== "kept") continue;
    const told = { "": event.kept, "taken again": event.takenAgain, recalled: event.recalled };
    const rest = { "recalled unused": event.recalledUnused, lapsed: event.lapsed };
    for (const [what, count] of Object.entries({ ...told, ...rest }))
      sums.set(what, (sums.get(what) ?? 0) + count);
  }
  return sums;
}

/** "LOCK_LOST gone: Lock 'x' was lost …" is one of "LOCK_LOST gone". */
const head = (error: string): string => error.split(":")[0] ?? "";

function line(name: string, counts: ReadonlyMap<string, number>, sum = sumOf(counts)): string {
  const kinds = [...counts].filter(([kind]) => kind !== "").sort(([, one], [, other]) => other - one);
  const details = kinds.map(([kind, count]) => `${kind} ${count}`).join(", ");
  return `  ${name.padEnd(22)} ${sum}${details === "" ? "" : ` (${details})`}`;
}

const sumOf = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((total, count) => total + count, 0);

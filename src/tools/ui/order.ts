import { waitingProcesses } from "../../inside.ts";
import type { Seen } from "./survey.ts";

/** The values that a column is sorted by. Null comes last in both directions. */
const COLUMNS: Readonly<Record<string, (lock: Seen) => string | number | null>> = {
  name: ({ name }) => name,
  holder: ({ holder }) => holder && (holder.label ?? holder.host ?? holder.id),
  held: ({ holder }) => holder?.heldFor ?? null,
  left: ({ holder }) => holder?.remaining ?? null,
  waiting: waitingProcesses,
  wait: ({ longest }) => longest,
};

/**
 * Sorts locks by a column: "held", or "-held" for the greatest first. Locks with the same value, and
 * all locks if there is no such column, stay in the order of the survey.
 */
export function inOrder(locks: readonly Seen[], sort: string): readonly Seen[] {
  const [, sign, name = ""] = /^(-?)(\w+)$/.exec(sort) ?? [];
  const keyOf = Object.hasOwn(COLUMNS, name) ? COLUMNS[name] : undefined;
  if (!keyOf) return locks;
  const way = sign === "-" ? -1 : 1;
  return locks
    .map((lock) => ({ lock, value: keyOf(lock) }))
    .sort(({ value: one }, { value: other }) => {
      if (one === other) return 0;
      if (one === null || other === null) return one === null ? 1 : -1;
      return one < other ? -way : way;
    })
    .map(({ lock }) => lock);
}

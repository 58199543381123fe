import type { Listed } from "../list/listed.ts";
import type { ShownBlock, ShownClient, ShownOwner } from "./shown.ts";
import { shownHolder, shownWaiter } from "./views.ts";

/** Clients that are shown at the most. */
const MOST = 500;

/** What one client holds that others wait for. */
interface Holdings {
  readonly owner: ShownOwner;
  readonly blocks: { readonly lock: Listed; readonly for: number | null }[];
  /** Of what it waits for itself: by other clients. */
  waits: number;
}

/**
 * Which clients wait for which others, as trees: those that wait for nobody, what they hold, and those that wait for that. Redis knows the
 * clients and not their callers, so a circle of clients is a sign and no proof of a deadlock: each of them may serve many callers.
 */
export function blocked(locks: readonly Listed[]): {
  readonly clients: ShownClient[];
  readonly isCut: boolean;
} {
  const waited = locks.filter(({ holders, waiters }) => holders.length > 0 && waiters.length > 0);
  const all = holdingsIn(waited);
  const told = new Set<string>();
  let shown = 0;

  const branch = (id: string, owner: ShownOwner, calls: number, path: readonly string[]): ShownClient => {
    shown++;
    const isCircle = path.includes(id);
    const isElsewhere = !isCircle && told.has(id);
    told.add(id);
    const held = isCircle || isElsewhere ? [] : (all.get(id)?.blocks ?? []);
    return { owner, calls, isCircle, isElsewhere, blocks: held.map((one) => block(one, [...path, id])) };
  };
  const block = ({ lock, for: ms }: Holdings["blocks"][number], path: readonly string[]): ShownBlock => {
    const callers = new Map<string, { owner: ShownOwner; calls: number }>();
    for (const waiter of lock.waiters) {
      const id = waiter.client ?? waiter.id;
      const known = callers.get(id);
      if (known) known.calls++;
      else callers.set(id, { owner: shownWaiter(waiter), calls: 1 });
    }
    const waiters: ShownClient[] = [];
    for (const [id, { owner, calls }] of callers) {
      if (shown >= MOST) break;
      // A client that waits for a lock of its own waits for a caller of its process.
      if (id === path.at(-1)) waiters.push({ owner, calls, isCircle: false, isElsewhere: true, blocks: [] });
      else waiters.push(branch(id, owner, calls, path));
    }
    return { kind: lock.kind, name: lock.name, for: ms, waiters };
  };

  const clients: ShownClient[] = [];
  // First those that wait for nobody; what is left then waits for each other.
  for (const isFirst of [true, false])
    for (const [id, { owner, waits }] of all)
      if (!told.has(id) && (waits === 0) === isFirst && shown < MOST) clients.push(branch(id, owner, 0, []));
  clients.sort((one, other) => Number(isCircled(other)) - Number(isCircled(one)));
  return { clients, isCut: shown >= MOST };
}

const isCircled = ({ isCircle, blocks }: ShownClient): boolean =>
  isCircle || blocks.some(({ waiters }) => waiters.some(isCircled));

function holdingsIn(locks: readonly Listed[]): Map<string, Holdings> {
  const all = new Map<string, Holdings>();
  for (const lock of locks)
    for (const holder of lock.holders) {
      const id = holder.client ?? holder.id;
      const known = all.get(id) ?? { owner: shownHolder(holder), blocks: [], waits: 0 };
      all.set(id, known);
      if (!known.blocks.some((one) => one.lock === lock)) known.blocks.push({ lock, for: holder.heldFor });
    }
  for (const { holders, waiters } of locks)
    for (const id of new Set(waiters.map(({ client, id }) => client ?? id))) {
      const known = all.get(id);
      if (known && holders.some((holder) => (holder.client ?? holder.id) !== id)) known.waits++;
    }
  return all;
}

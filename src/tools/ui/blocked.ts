import type { Listed } from "../../index.ts";
import { clientOf } from "../../inside.ts";
import type { ShownBlock, ShownCircle, ShownClient, ShownWaiter } from "./shown.ts";
import { isWaited } from "./survey.ts";
import { partyOf, shownWaiter } from "./views.ts";

/** The limit for clients that are shown. */
const MOST = 500;

/** The locks of one client that others wait for. */
interface Holdings {
  readonly party: ShownWaiter;
  readonly blocks: { readonly lock: Listed; readonly heldFor: number | null }[];
  /** How many locks of other clients it waits for. */
  waits: number;
}

/**
 * Which clients wait for which others, as trees: clients that wait for no other client, their locks,
 * and the clients that wait for these. Redis knows the clients and not their callers, and a client
 * may have many callers. So clients that wait for each other are a sign of a deadlock and no proof.
 * `circles`: the proven deadlocks.
 */
export function blocked(
  locks: readonly Listed[],
  circles: readonly ShownCircle[],
): {
  readonly clients: ShownClient[];
  readonly isCut: boolean;
} {
  const waited = locks.filter((lock) => lock.holders.length > 0 && isWaited(lock));
  const all = holdingsIn(waited);
  const known = new Map(
    circles.map(({ cycle, isSure }) => [
      roundOf(cycle.map(({ holder, kind, name }) => ({ id: clientOf(holder), kind, name }))),
      isSure ? ("deadlock" as const) : ("possible" as const),
    ]),
  );
  const told = new Set<string>();
  let shown = 0;

  const branch = (id: string, party: ShownWaiter, calls: number, path: readonly Step[]): ShownClient => {
    shown++;
    const from = path.findIndex((step) => step.id === id);
    const isElsewhere = from < 0 && told.has(id);
    told.add(id);
    const held = from >= 0 || isElsewhere ? [] : (all.get(id)?.blocks ?? []);
    const circle = from < 0 ? null : (known.get(roundOf(path.slice(from))) ?? "sign");
    const blocks = held.map((one) => block(one, [...path, { id, kind: one.lock.kind, name: one.lock.name }]));
    return { ...party, calls, circle, isElsewhere, blocks };
  };
  const block = ({ lock, heldFor }: Holdings["blocks"][number], path: readonly Step[]): ShownBlock => {
    const callers = new Map<string, { party: ShownWaiter; calls: number }>();
    for (const waiter of lock.waiters ?? []) {
      const id = clientOf(waiter);
      const known = callers.get(id);
      if (known) known.calls++;
      else callers.set(id, { party: shownWaiter(waiter), calls: 1 });
    }
    const waiters: ShownClient[] = [];
    for (const [id, { party, calls }] of callers) {
      if (shown >= MOST) break;
      // A client that waits for its own lock waits for another caller of its process.
      if (id === path.at(-1)?.id)
        waiters.push({ ...party, calls, circle: null, isElsewhere: true, blocks: [] });
      else waiters.push(branch(id, party, calls, path));
    }
    return { kind: lock.kind, name: lock.name, heldFor, waiters };
  };

  const clients: ShownClient[] = [];
  // First the clients that wait for no other client. The remaining ones wait for each other.
  for (const isFirst of [true, false])
    for (const [id, { party, waits }] of all)
      if (!told.has(id) && (waits === 0) === isFirst && shown < MOST) clients.push(branch(id, party, 0, []));
  clients.sort((one, other) => Number(isCircled(other)) - Number(isCircled(one)));
  return { clients, isCut: shown >= MOST };
}

/** A client, and its lock that the next client waits for. */
interface Step {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
}

/** The same text for the same circle, whichever client comes first. */
const roundOf = (steps: readonly Step[]): string =>
  JSON.stringify(steps.map(({ id, kind, name }) => `${id} ${kind} ${name}`).sort());

const isCircled = ({ circle, blocks }: ShownClient): boolean =>
  circle !== null || blocks.some(({ waiters }) => waiters.some(isCircled));

function holdingsIn(locks: readonly Listed[]): Map<string, Holdings> {
  const all = new Map<string, Holdings>();
  for (const lock of locks)
    for (const holder of lock.holders) {
      const id = clientOf(holder);
      const known = all.get(id) ?? { party: { ...partyOf(holder), waitedFor: null }, blocks: [], waits: 0 };
      all.set(id, known);
      if (!known.blocks.some((one) => one.lock === lock))
        known.blocks.push({ lock, heldFor: holder.heldFor });
    }
  for (const { holders, waiters } of locks)
    for (const id of new Set(waiters?.map(clientOf))) {
      const known = all.get(id);
      if (known && holders.some((holder) => clientOf(holder) !== id)) known.waits++;
    }
  return all;
}

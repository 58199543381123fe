import type { Listed } from "../../index.ts";
import { clientOf } from "../../inside.ts";
import { LONG_WAIT, type ShownBlock, type ShownCircle, type ShownClient, type ShownWaiter } from "./shown.ts";
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
 * may have many callers. So clients that wait for each other are a sign of a deadlock and no proof,
 * and none before each has waited for long.
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
    const round = from < 0 ? [] : path.slice(from);
    const circle = round.length > 0 ? (known.get(roundOf(round)) ?? signOf(party, round)) : null;
    const isElsewhere = circle === null && told.has(id);
    told.add(id);
    const held = circle !== null || isElsewhere ? [] : (all.get(id)?.blocks ?? []);
    const { waitedFor } = party;
    const blocks = held.map((one) => {
      const { kind, name } = one.lock;
      return block(one, [...path, { id, kind, name, waitedFor }]);
    });
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

/** A client, how long it has waited, and its lock that the next client waits for. */
interface Step extends Pick<ShownWaiter, "waitedFor"> {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
}

/** The same text for the same circle, whichever client comes first. */
const roundOf = (steps: readonly Pick<Step, "id" | "kind" | "name">[]): string =>
  JSON.stringify(steps.map(({ id, kind, name }) => `${id} ${kind} ${name}`).sort());

/**
 * Callers that take turns at some locks form circles all the time, and none of them waits for long.
 * `last`: the first client of the round, as it waits for the last one.
 */
function signOf(last: ShownWaiter, [, ...others]: readonly Step[]): "sign" | null {
  return [last, ...others].every(({ waitedFor }) => (waitedFor ?? 0) >= LONG_WAIT) ? "sign" : null;
}

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

import { setTimeout as delay } from "node:timers/promises";
import { Keys } from "../../../src/redis/keys.ts";
import { KEY_PREFIX, LOCKS } from "../arenas/arena.ts";
import type { Dice } from "../dice.ts";
import type { Fault, Field } from "./fault.ts";
import { type Node, names, type Roster } from "./roster.ts";

const KEYS = new Keys("", false);
const LOCK_KEYS = LOCKS.map((lock) => KEY_PREFIX + KEYS.ofQuorum(lock).lock);
/** ms between two looks, and how many there are. */
const LOOK_EVERY = 10;
const LOOKS = 200;
/** ms after which another node that does not answer counts as one that has nothing. */
const ANSWERS_WITHIN = 100;

/**
 * Nodes that lose what they have and go on running. The promise bears it where the others have it
 * too, so it comes only then.
 */
export function forgetfulness(roster: Roster): readonly Fault[] {
  // RACE: two nodes at a time, each of which sees what the other one is about to forget.
  let turn = Promise.resolve(false);
  const fault = (kind: string, how: (node: Node, dice: Dice) => Harm): Fault => ({
    kind,
    weight: 3,
    run: (field, begin) =>
      roster.withOne(field.dice, async (node) => {
        const { detail, harm } = how(node, field.dice);
        const once = (): Promise<boolean> =>
          undisturbed(field, node, async () => {
            const mine = await holds(node);
            if (!(await stand(mine, node, roster))) return false;
            begin(`${names([node])}${detail}, which has ${mine.filter((one) => one !== null).length} locks`);
            await harm();
            return true;
          });
        for (let look = 0; look < LOOKS; look++) {
          turn = turn.then(once);
          if (await turn) return;
          await delay(LOOK_EVERY);
        }
      }),
  });
  const flush = fault("FLUSHALL", ({ admin }) => ({ detail: "", harm: () => admin.flushall() }));
  const jump = fault("turn a node's clock forward", ({ clock }, dice) => {
    const ms = dice.pick([dice.int(500, 4_000), 3_600_000]);
    return { detail: ` by ${ms} ms`, harm: () => clock?.jump(ms) };
  });
  return roster.nodes.every(({ clock }) => clock) ? [flush, jump] : [flush];
}

interface Harm {
  readonly detail: string;
  harm(): unknown;
}

/**
 * RACE: a vote between the look at a node and what follows. So nothing gets there meanwhile, and
 * what it was sent before it has answered: it was asked twice since.
 */
async function undisturbed<T>({ wires }: Field, { admin, number }: Node, body: () => Promise<T>): Promise<T> {
  const its = wires.all([number - 1]);
  for (const wire of its) wire.freeze();
  try {
    for (let i = 0; i < 2; i++) await admin.ping();
    return await body();
  } finally {
    for (const wire of its) wire.thaw();
  }
}

/** Does every hold of this node stand on a majority without it? */
async function stand(mine: Holds, node: Node, { nodes, majority }: Roster): Promise<boolean> {
  const asked = nodes
    .filter((one) => one !== node && one.server.state === "running")
    .map((one) => Promise.race([holds(one).catch(() => []), delay(ANSWERS_WITHIN, [])]));
  const others = await Promise.all(asked);
  return mine.every(
    (hold, lock) => hold === null || others.filter((held) => held[lock] === hold).length >= majority,
  );
}

/** By lock; null: nobody. */
type Holds = readonly (string | null)[];

async function holds({ admin }: Node): Promise<Holds> {
  const values = await admin.mget(LOCK_KEYS);
  return values.map((value) => value?.split(" ")[0] ?? null);
}

import { expect, test } from "vitest";
import { Dice } from "../dice.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";

// docs/guarantees.md, "When Redis loses the key": at random moments, while callers of several
// processes take locks at random, hand them over and cache them. Turns from before a loss begin for
// 100 ms at the most; otherwise there is one holder, and tokens grow.
//
// The names are none that the run's checks read, so the witness alone judges.

/** ms: how long after an answer a lock may be taken, and the way of that answer. */
const FRESH = 100 + 1;
const OWN = ["own0", "own1", "own2", "own3"] as const;
const SHARED = "shared";
const ALL = [...OWN, SHARED];
/** ms */
const LENGTH = 2_000;

interface Seen {
  readonly token: number;
  readonly held: boolean;
}

interface Turn {
  readonly lease: Seen;
  readonly at: number;
}

/** Sees every turn of every process, and which locks Redis has lost when. */
class Witness {
  readonly found: string[] = [];
  turns = 0;
  readonly #now: () => number;
  readonly #inside = new Map<string, Set<Turn>>();
  readonly #highest = new Map<string, number>();
  readonly #losses = new Map<string, number[]>();

  constructor({ now }: Scene) {
    this.#now = now;
  }

  loses(name: string): void {
    this.#losses.set(name, [...this.#lossesOf(name), this.#now()]);
  }

  /** A caller has it. Returns what ends its turn. */
  enter(name: string, lease: Seen): () => void {
    this.turns++;
    const turn = { lease, at: this.#now() };
    const inside = this.#inside.get(name) ?? new Set();
    this.#inside.set(name, inside);
    for (const other of inside)
      if (other.lease.held && lease.held && !this.#mayOverlap(name, other, turn))
        this.found.push(`two holders of ${name}: tokens ${other.lease.token} and ${lease.token}`);
    const highest = this.#highest.get(name) ?? 0;
    const isEarly = this.#lossesOf(name).some((lost) => turn.at >= lost && turn.at <= lost + FRESH);
    if (lease.token <= highest && !isEarly) this.found.push(`${name}: token ${lease.token} after ${highest}`);
    this.#highest.set(name, Math.max(highest, lease.token));
    inside.add(turn);
    return () => void inside.delete(turn);
  }

  #lossesOf(name: string): readonly number[] {
    return this.#losses.get(name) ?? [];
  }

  /** The turn with the smaller token began before its process could know of a loss. */
  #mayOverlap(name: string, one: Turn, other: Turn): boolean {
    const [before, after] = one.lease.token < other.lease.token ? [one, other] : [other, one];
    return this.#lossesOf(name).some((lost) => after.at >= lost && before.at <= lost + FRESH);
  }
}

/** What callers may be told when keys are lost and leases are short. */
function expected(error: { code?: string; errors?: { code?: string }[] }): undefined {
  for (const { code } of error.errors ?? [error])
    if (!/^LOCK_(LOST|TIMEOUT|UNAVAILABLE|RELEASED)$/.test(code ?? "")) throw error;
}

const inside = ({ pass }: Scene, dice: Dice): Promise<void> =>
  dice.chance(0.4) ? Promise.resolve() : pass(dice.chance(0.95) ? dice.between(0, 5) : dice.between(60, 250));

/** Takes a lock of its process, or one of another, and the shared one, together or none. */
async function takeTwo(world: Scene, { client }: SceneProcess, name: string, dice: Dice, seen: Witness) {
  const lease = await client
    .multiLock([name, SHARED])
    .tryLock({ wait: dice.one([0, 50]) })
    .catch(expected);
  if (!lease) return;
  const leave = [...lease.tokens].map(([one, token]) =>
    seen.enter(one, {
      token,
      get held() {
        return lease.held;
      },
    }),
  );
  await inside(world, dice);
  for (const go of leave) go();
  await lease.unlock().catch(expected);
}

async function call(world: Scene, one: SceneProcess, own: string, dice: Dice, seen: Witness): Promise<void> {
  const { client } = one;
  while (world.now() < LENGTH) {
    await world.pass(dice.chance(0.95) ? dice.between(0, 4) : dice.between(5, 250));
    const name = dice.chance(0.3) ? SHARED : dice.chance(0.9) ? own : dice.one(OWN);
    if (name !== SHARED && dice.chance(0.1)) {
      await takeTwo(world, one, name, dice, seen);
      continue;
    }
    const lock = dice.chance(0.04) ? client.fairLock(name) : client.lock(name);
    const wait = dice.chance(0.3) ? dice.whole(0, 80) : 20_000;
    const options = dice.chance(0.25) ? { lease: dice.one([400, 2_000, 5_000]) } : {};
    const lease = await lock.tryLock({ wait, ...options }).catch(expected);
    if (lease === null && wait === 20_000) seen.found.push(`a caller waited in vain for ${name}`);
    if (!lease) continue;
    const leave = seen.enter(name, lease);
    await inside(world, dice);
    leave();
    await lease.unlock().catch(expected);
  }
}

test.each(Array.from({ length: 20 }, (_, i) => i + 1))(
  "one holder at a time, and growing tokens, but for 100 ms after a loss: seed %i",
  (seed) =>
    scene(async (world) => {
      const dice = new Dice(seed);
      const seen = new Witness(world);
      const callers = OWN.flatMap((own) => {
        const [one] = world.processes(1, {
          linger: dice.one([0, 200, 1_000]),
          localHandoffs: dice.one([0, 1, 16]),
          leaseTime: dice.one([3_000, 30_000]),
        });
        one.heard("error");
        return [1, 2, 3].map(() => call(world, one, own, dice.split(), seen));
      });
      while (world.now() < LENGTH) {
        await world.pass(dice.between(20, 300));
        const lost = dice.chance(0.2) ? ALL : [dice.one(ALL)];
        for (const name of lost) seen.loses(name);
        if (lost.length > 1) world.redis.dropAll();
        else
          for (const name of lost)
            if (world.redis.keys(name).some((key) => key.endsWith("}"))) world.redis.drop(name);
      }
      await Promise.all(callers);
      expect([seen.found, seen.turns > 50]).toEqual([[], true]);
    })(),
);

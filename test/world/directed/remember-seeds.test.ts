import { describe, expect, test } from "vitest";
import { Dice } from "../dice.ts";
import { EPOCH } from "../simulated-process.ts";
import { type Scene, scene } from "./scene.ts";
import type { SceneProcess } from "./scene-process.ts";
import { L } from "./steps.ts";

// Results that callers share, with calls and faults at random moments.

const SEEDS = Number(process.env.REMEMBER_SEEDS ?? 40);
const FROM = Number(process.env.REMEMBER_FROM ?? 1);
const LEASES = [300, 1_000, 3_000];

interface Ended {
  readonly began: number;
  readonly ended: number;
  readonly token: number;
  readonly at: number;
  readonly keep: number;
  readonly ran: boolean;
}

/** What calls have said, and what must be true of it. */
class History {
  readonly ended: Ended[] = [];
  readonly forgotten: { readonly began: number; readonly ended: number }[] = [];
  readonly inside = new Set<{ readonly held: boolean; readonly token: number }>();
  readonly values = new Map<number, number>();
  /** How long the results of runs that have ended are for new callers, in ms, by token. */
  readonly keeps = new Map<number, number>();
  bodies = 0;
  open = 0;

  entered(run: { readonly held: boolean; readonly token: number }): void {
    const held = [...this.inside].filter((one) => one.held);
    if (held.length > 0) throw new Error(`two bodies: of token ${held[0]?.token} and ${run.token}`);
    this.inside.add(run);
  }

  add(one: Ended, value: number): void {
    const known = this.values.get(one.token);
    if (known !== undefined && known !== value)
      throw new Error(`two values of token ${one.token}: ${known} and ${value}`);
    this.values.set(one.token, value);
    if (one.ran) this.keeps.set(one.token, one.keep);
    const keep = this.keeps.get(one.token);
    const stored = one.at - EPOCH;
    if (!one.ran && keep !== undefined && stored + keep < one.began - 2 && stored < one.began - 2)
      throw new Error(`a call got token ${one.token}, which new callers had got for ${keep} ms only`);
    for (const earlier of this.ended) {
      if (earlier.ended >= one.began || earlier.at === 0) continue;
      if (earlier.token > one.token)
        throw new Error(`a call got token ${one.token} after another one had ${earlier.token}`);
      const isForgotten = this.forgotten.some(
        ({ began, ended }) => earlier.ended < began && ended < one.began,
      );
      if (isForgotten && earlier.token === one.token)
        throw new Error(`a call got token ${one.token}, which was forgotten`);
    }
    this.ended.push(one);
  }

  /** Without faults a caller that came before a result was stored does not run after that. */
  checkWaiters(): void {
    for (const one of this.ended)
      for (const { token, at, ran } of this.ended) {
        const stored = at - EPOCH;
        const isForgotten = this.forgotten.some(({ began, ended }) => began < stored + 5 && stored < ended);
        if (one.ran && ran && token < one.token && one.began < stored - 2 && !isForgotten)
          throw new Error(`the caller that ran with token ${one.token} had waited for ${token}`);
      }
  }
}

async function caller(world: Scene, one: SceneProcess, dice: Dice, history: History, isOver: () => boolean) {
  while (!isOver()) {
    await one.sleep(dice.between(1, 400));
    if (isOver()) return;
    const began = world.now();
    if (dice.chance(0.08)) {
      await one
        .does(() => one.client.forget("x"))
        .then(
          () => history.forgotten.push({ began, ended: world.now() }),
          () => {},
        );
      continue;
    }
    const keep = dice.one([0, 50, 500, 5_000]);
    const throws = dice.chance(0.2);
    const work = dice.one([1, 5, 50, 500, 2_000]);
    const leaving = dice.chance(0.1) ? new AbortController() : null;
    if (leaving) void one.sleep(dice.between(1, 300)).then(() => leaving.abort(new Error("enough")));
    const lease = dice.one(LEASES);
    history.open++;
    try {
      const { value, ran, token, at } = await one.does(() =>
        one.client.remember(
          "x",
          { keep, lease, wait: dice.one([0, 100, 60_000]), ...(leaving && { signal: leaving.signal }) },
          async (run) => {
            history.entered(run);
            const mine = ++history.bodies;
            try {
              await one.sleep(work);
              if (throws) throw new Error("no");
              return mine;
            } finally {
              history.inside.delete(run);
            }
          },
        ),
      );
      history.add({ began, ended: world.now(), token, at, keep, ran }, value as number);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      if (
        !["LOCK_TIMEOUT", "LOCK_LOST", "LOCK_UNAVAILABLE"].includes(code ?? "") &&
        !["no", "enough"].includes(message)
      )
        throw error;
    } finally {
      history.open--;
    }
  }
}

const FAULTS: readonly ((world: Scene, one: SceneProcess, dice: Dice) => void)[] = [
  (_, one, dice) => one.pause(dice.between(10, 4_000)),
  (_, one, dice) => one.cutOff(dice.between(5, 1_000)),
  (_, one, dice) => one.freeze(dice.between(5, 1_500)),
  (_, one, dice) => one.commands.cut({ back: dice.between(5, 300) }),
  (_, one, dice) => one.commands.cut({ copies: dice.between(50, 3_000), back: dice.between(5, 50) }),
  (_, one, dice) => one.messages.freezeReplies(dice.between(50, 3_000)),
  (_, one, dice) => one.commands.freezeReplies(dice.between(5, 1_500)),
  (world, _, dice) => world.delay(dice.between(0.1, 3)),
];

function fault(world: Scene, one: SceneProcess, dice: Dice): void {
  try {
    dice.one(FAULTS)(world, one, dice);
  } catch (error) {
    if (!/no open connection/.test((error as Error).message)) throw error;
  }
}

describe("at random", () => {
  test.each(Array.from({ length: SEEDS }, (_, i) => FROM + i))("seed %i", (seed) =>
    scene(async (world) => {
      const dice = new Dice(seed);
      const all: SceneProcess[] = world.processes(4);
      for (const one of all) one.heard("error");
      const history = new History();
      let isOver = false;
      const callers = all.flatMap((one) => [1, 2].map(() => caller(world, one, dice, history, () => isOver)));
      const hasFaults = dice.chance(0.8);
      for (let i = 0; i < 20; i++) {
        await world.pass(dice.between(50, 1_500));
        if (hasFaults) fault(world, dice.one(all), dice);
      }
      isOver = true;
      await world.pass(10);
      await Promise.all(callers);
      await world.pass(L);
      expect(history.open).toBe(0);
      if (!hasFaults) history.checkWaiters();
      expect(history.ended.length).toBeGreaterThan(5);
    })(),
  );
});

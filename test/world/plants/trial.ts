import { missing } from "../effects.ts";
import type { Outcome } from "../simulate.ts";
import { runSeeds } from "../threads.ts";
import { copyWith } from "./copy.ts";
import type { Plant } from "./plant.ts";

/**
 * The promise that the last of these runs broke; or what did not happen in any of them; null: all is
 * well.
 */
export function failureOf(played: readonly Outcome[]): string | null {
  const broken = played.find(({ failure }) => failure !== null);
  if (broken) return broken.failure;
  const effects = missing(played);
  return played.filter(({ hasFaults }) => hasFaults).length < ENOUGH || effects.length === 0
    ? null
    : `nothing of this happened: ${effects.join(", ")}`;
}

/** So many seeds with faults have every effect of a fault. */
const ENOUGH = 10;

/** In ms of virtual time: of each run. */
const LENGTH = 30_000;

/** Runs these seeds with this bug, until one fails; null: without a bug. */
export async function play(plant: Plant | null, seeds: readonly number[]): Promise<Outcome[]> {
  await using copy = await copyWith(plant);
  const played: Outcome[] = [];
  // A bug may be in the simulation itself, so the simulation is the copy's too.
  for await (const outcome of runSeeds({ root: copy.root, world: copy.root, ms: LENGTH }, seeds)) {
    played.push(outcome);
    if (outcome.failure !== null) break;
  }
  return played;
}

import type { Redis } from "ioredis";
import type { Player } from "./crew/player.ts";
import { findPlayers, type OtherCommit } from "./crew/players.ts";
import { medians } from "./figures/medians.ts";
import type { Figures, Machine, ScenarioResult } from "./figures/result.ts";
import { watchMachine } from "./machine.ts";
import type { Progress } from "./report/progress.ts";
import { runRound } from "./round.ts";
import type { Scenario } from "./scenarios/scenario.ts";

/** What all scenarios of a run share. */
export interface Run {
  readonly redis: Redis;
  readonly url: string;
  readonly seed: number;
  readonly rounds: number;
  /** A factor for the time in which processes run cold, and for the contenders' warm-up. */
  readonly before: number;
  readonly signal: AbortSignal;
  readonly progress: Progress;
  readonly machine: Machine;
  /** Another commit's Holdfast, which takes part beside the present one. */
  readonly other: OtherCommit | null;
  /** Where CPU profiles of the workers go; null: none are made. */
  readonly profile: string | null;
  /** Why the Java contenders cannot run; null: they can. */
  readonly javaTrouble: string | null;
}

interface Record {
  readonly player: Player;
  readonly rounds: Figures[];
  readonly trouble: Set<string>;
}

/**
 * All rounds of a scenario. In each, every contender has its turn, in the opposite order every
 * other time: what the machine does meanwhile hits them alike. One that hangs or fails is noted,
 * and has its next chance in the next round.
 */
export async function runScenario(scenario: Scenario, run: Run): Promise<ScenarioResult> {
  const players = findPlayers({ profile: run.profile, other: run.other });
  const records = scenario.contenders.flatMap((id): Record[] => {
    const player = players.get(id);
    return player ? [{ player, rounds: [], trouble: new Set() }] : [];
  });
  const rounds = run.rounds * scenario.slices;
  const busy = await watchMachine(run.redis);
  for (let round = 1; round <= rounds; round++) {
    for (const record of round % 2 === 1 ? records : [...records].reverse())
      await takeTurn(scenario, record, { round, rounds }, run);
  }
  return {
    scenario: scenario.name,
    about: scenario.about,
    seed: run.seed,
    rounds,
    machine: run.machine,
    busy: await busy(),
    entries: records.map(({ player, rounds, trouble }) => ({
      id: player.id,
      title: player.title,
      waits: player.waits,
      figures: medians(rounds),
      rounds,
      trouble: [...trouble],
    })),
  };
}

async function takeTurn(
  scenario: Scenario,
  record: Record,
  { round, rounds }: { round: number; rounds: number },
  run: Run,
): Promise<void> {
  const { player, trouble } = record;
  const { progress, signal } = run;
  if (run.javaTrouble !== null && player.isJava) {
    trouble.add(run.javaTrouble);
    progress.skip(1);
    return;
  }
  progress.start({ scenario: scenario.name, contender: player.title, round, rounds });
  let why: string | null = null;
  try {
    record.rounds.push(
      await runRound(scenario, player, {
        redis: run.redis,
        url: run.url,
        seed: run.seed + round,
        before: run.before,
        signal,
        onProgress: (acquired) => progress.show(acquired),
      }),
    );
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    why = error instanceof Error ? error.message : String(error);
    trouble.add(why);
  }
  progress.end(why);
}

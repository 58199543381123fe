import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Story } from "../checker/story.ts";
import { nameOf, type Violation } from "../checker/violation.ts";
import { runGo } from "./go.ts";
import { histories } from "./histories.ts";

interface Verdict {
  readonly name: string;
  readonly result: "Ok" | "Illegal" | "Unknown";
  /** The number of the hold that fits nowhere. */
  readonly stuck: number;
}

export interface Judgement {
  readonly violations: readonly Violation[];
  readonly histories: number;
  readonly operations: number;
  /** Leases that may have met a server which had forgotten, or were over before their holders had them. */
  readonly leftOut: number;
  /** Names of histories for which it had not the time. */
  readonly undecided: readonly string[];
}

/**
 * Asks Porcupine, a checker by other people, whether each lock's history is that of a lock at all:
 * is there an order of the operations that a model allows, in which each happens between its call
 * and its return? `folder`: gets a picture of each that is not.
 */
export async function judge(story: Story, folder: string): Promise<Judgement> {
  const all = histories(story);
  const file = join(folder, "porcupine.json");
  await writeFile(file, JSON.stringify(all.map(({ holds: _, ...rest }) => rest)));
  const lines = (await runGo([file, folder])).trim().split("\n").filter(Boolean);
  const verdicts = lines.map((line) => JSON.parse(line) as Verdict);
  if (verdicts.length !== all.length) throw new Error(`Porcupine judged ${verdicts.length} of ${all.length}`);
  const violations = verdicts.flatMap(({ name, result, stuck }, place): Violation[] => {
    const history = all[place];
    if (result !== "Illegal" || !history) return [];
    const hold = history.holds[stuck - 1];
    const which = hold ? `; ${nameOf(hold.call)} with token ${hold.token} fits nowhere` : "";
    const what = `${name} is no history of a ${history.model}${which} (porcupine-${place}.html shows it)`;
    return [{ rule: "linearizable", what, at: hold?.from ?? 0, calls: hold ? [hold.call] : [] }];
  });
  return {
    violations,
    histories: all.length,
    operations: all.reduce((sum, { operations }) => sum + operations.length, 0),
    leftOut: [...story.holds.values()].flat().length - new Set(all.flatMap(({ holds }) => holds)).size,
    undecided: verdicts.filter(({ result }) => result === "Unknown").map(({ name }) => name),
  };
}

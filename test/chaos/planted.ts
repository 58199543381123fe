import { rm } from "node:fs/promises";
import { expect, it } from "vitest";
import { type RunOptions, run } from "./run.ts";
import type { Plant } from "./worker/plants.ts";

export interface Ill {
  readonly plant: Plant;
  /** What the bug needs to show itself. */
  readonly needs: Pick<RunOptions, "seconds" | "only" | "faults">;
  /** What is broken by it. */
  readonly rule: string;
}

/** A checker that finds nothing proves nothing: with a bug in every worker, a short run must show it. */
export function finds(topology: RunOptions["topology"], ills: readonly Ill[]): void {
  it.each(ills)("$plant", { timeout: 120_000 }, async ({ plant, needs, rule }) => {
    const { violations, folder } = await run({
      topology,
      seed: 1,
      workers: 3,
      drain: 8_000,
      ...needs,
      plant,
    });
    await rm(folder, { recursive: true, force: true });
    expect(violations.map((violation) => violation.rule)).toContain(rule);
  });
}

import { FakeKeeper, type Manners } from "../support/fake-keeper.ts";
import { patience } from "../support/patience.ts";
import { runs, type Stage } from "../support/stage.ts";

/** ms until a keeper that does not answer is given up. */
export const SILENCE = 200;
/** ms of what is told at once: far less than the time of one that would answer. */
export const AT_ONCE = 400;

/**
 * Another client keeps the lock of the stage, and answers questions in this way. Its test has
 * mocked `defaults.ts` by `patient()`.
 */
export async function keptElsewhere(stage: Stage, manners: Manners): Promise<FakeKeeper> {
  patience.keeper = manners === "silent" ? SILENCE : 3_000;
  const keeper = await FakeKeeper.start(stage.server.url, manners);
  await keeper.keep(stage.lock.name);
  return keeper;
}

/** How many commands of this script the client of the stage has sent. */
export const scriptsSent = (stage: Stage, ...script: Parameters<typeof runs>): number =>
  stage.proxy.commands.filter(({ command }) => runs(...script)(command)).length;

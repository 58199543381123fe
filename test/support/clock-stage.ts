import { present } from "./present.ts";
import { launchWithClock, type ServerClock } from "./server-clock.ts";
import { Stage, type StageOptions } from "./stage.ts";

export const HOUR = 3_600_000;

/**
 * A stage whose server has its own wall clock. To be called once in a test file.
 *
 * @example
 * const { stage, clock } = stageWithClock();
 * it("…", async () => {
 *   const lease = await stage.near.locks.lock(stage.lock.name).lock();
 *   clock.jump(-HOUR);
 * });
 */
export function stageWithClock(options: Omit<StageOptions, "launch"> = {}): {
  readonly stage: Stage;
  readonly clock: ServerClock;
} {
  let launched: ServerClock | undefined;
  const stage = new Stage({
    ...options,
    async launch() {
      const { server, clock } = await launchWithClock();
      launched = clock;
      return server;
    },
  });
  const clock: ServerClock = {
    get ahead() {
      return present(launched).ahead;
    },
    jump: (ms) => present(launched).jump(ms),
  };
  return { stage, clock };
}

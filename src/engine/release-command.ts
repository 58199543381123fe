import { failing } from "../api/stacks.ts";
import type { Ending } from "../core/ending.ts";
import type { Callback, LockKind } from "../core/lock-kind.ts";
import { lossOf } from "../core/telling.ts";
import type { ReleaseAnswer } from "../redis/replies.ts";
import type { Context } from "./context.ts";
import type { Hold } from "./lease/hold.ts";
import { unconfirmed } from "./lease/release-outcome.ts";
import type { Departure } from "./lease/shared-lease.ts";

/** Whose hold is released. */
interface Releasing {
  readonly hold: Hold;
  readonly kind: LockKind;
  readonly context: Context;
  readonly ending: Ending;
}

/**
 * The command that releases a hold, from when it is sent to its answer, which its last user
 * receives. `by`: that user, which had the hold for `held` ms. `woken` is called when no release
 * message will come.
 */
export class ReleaseCommand implements Callback<ReleaseAnswer> {
  readonly #epoch: number;

  constructor(
    private readonly tenure: Releasing,
    private readonly by: Departure,
    private readonly held: number,
    private readonly waiting: { woken(): void } | null,
    private readonly resolve: (failed: undefined | Promise<never>) => void,
  ) {
    this.#epoch = tenure.context.commands.epoch;
    tenure.context.cleanup.releases++;
  }

  answered(answer: ReleaseAnswer): void {
    const { commands, events } = this.tenure.context;
    const isBroken = commands.epoch !== this.#epoch;
    if (answer.is === "released") this.#end(undefined);
    else
      events.step(() => {
        // Nothing was released, so no message is sent, and we were waiting for it.
        this.waiting?.woken();
        const loss = lossOf(this.tenure, this.by, this.held, answer, isBroken);
        this.#end(loss ? failing(loss) : undefined);
      });
    this.tenure.ending.answered({ answer, isBroken });
  }

  failed(error: unknown): void {
    const { hold, kind, context } = this.tenure;
    this.waiting?.woken();
    context.leave(kind, hold);
    this.#end(failing(unconfirmed(hold, error, kind)));
    this.tenure.ending.answered({ answer: null, error });
  }

  #end(failed: undefined | Promise<never>): void {
    const { cleanup } = this.tenure.context;
    cleanup.releases--;
    this.by.settle();
    this.resolve(failed);
    if (cleanup.isEnding) cleanup.look();
  }
}

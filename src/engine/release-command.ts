import type { LockLostError } from "../api/errors.ts";
import { failing } from "../api/stacks.ts";
import type { Callback, LockKind } from "../core/lock-kind.ts";
import type { ReleaseAnswer } from "../redis/replies.ts";
import type { Context } from "./context.ts";
import type { Ending } from "./ending.ts";
import type { Hold } from "./lease/hold.ts";
import { unconfirmed } from "./lease/release-outcome.ts";
import type { Departure, SharedLease } from "./lease/shared-lease.ts";

/** Whose hold is released. */
interface Releasing {
  readonly hold: Hold;
  readonly kind: LockKind;
  readonly context: Context;
  /** Was it lost before its release? Then its holder is notified. */
  lossOf(by: Departure, held: number, answer: ReleaseAnswer, isBroken: boolean): LockLostError | null;
  readonly ending: Ending;
}

/** A caller that has left, and whose release waits for the end of a turn of the event loop. */
export interface Leaver {
  readonly lease: SharedLease;
  readonly held: number;
  resolve(released?: Promise<void>): void;
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
        const loss = this.tenure.lossOf(this.by, this.held, answer, isBroken);
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

/**
 * A shrink was not answered: until Redis has processed one, others wait for those units, at most
 * for as long as the hold lives. RACE: more units may be freed meanwhile. A hold only shrinks, so
 * commands with the `stays` of their time may arrive in any order.
 */
export function shrinkAgain({ hold, kind, context }: Releasing, stays: () => number): void {
  const withdraw = (): Promise<ReleaseAnswer> =>
    new Promise((answered, failed) => {
      kind.shrink?.(hold, stays(), { answered, failed });
    });
  context.cleanup.add({ withdraw }, hold, hold.mayLive);
}

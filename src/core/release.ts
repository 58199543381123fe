import { failing } from "../api/stacks.ts";
import type { ReleaseAnswer } from "../redis/replies.ts";
import { clocks } from "../util/clock.ts";
import type { Ending } from "./ending.ts";
import type { Hold } from "./lease/hold.ts";
import { unconfirmed } from "./lease/release-outcome.ts";
import type { Departure } from "./lease/shared-lease.ts";
import type { Line } from "./line.ts";
import type { Callback, LockKind } from "./lock-kind.ts";
import type { Port } from "./port.ts";
import { lossOf } from "./telling.ts";

/** The command that gives a hold back, and the caller that awaits it, which had it for `held` ms. */
export class Release implements Callback<ReleaseAnswer> {
  #resolve!: (failed: undefined | Promise<never>) => void;
  /**
   * Rejects with LockLostError or LockUnavailableError. A plain promise: its rejections get the
   * caller's line where they are made.
   */
  readonly outcome = new Promise<void>((resolve) => {
    this.#resolve = resolve;
  });
  readonly #epoch: number;
  readonly #sent = clocks.mono.now();

  constructor(
    private readonly place: Releasing,
    readonly hold: Hold,
    private readonly by: Departure,
    private readonly held: number,
    /** For other users of the hold. */
    private readonly ending: Ending | null = null,
  ) {
    const { commands, cleanup } = place.context;
    this.#epoch = commands.epoch;
    cleanup.releases++;
    ending?.sent();
  }

  answered(answer: ReleaseAnswer): void {
    const { commands, events } = this.place.context;
    const isBroken = commands.epoch !== this.#epoch;
    const { kept } = answer;
    if (kept) events.step(() => this.place.line?.serve(kept, this.#sent, this.#sent));
    if (answer.is === "released") this.#end(undefined);
    else
      events.step(() => {
        this.place.unreleased?.();
        const loss = lossOf(this.place, this.by, this.held, answer, isBroken);
        this.#end(loss ? failing(loss) : undefined);
      });
    this.ending?.answered({ answer, isBroken });
  }

  failed(error: unknown): void {
    const { kind, context } = this.place;
    this.place.unreleased?.();
    context.leave(kind, this.hold);
    this.#end(failing(unconfirmed(this.hold, error, kind)));
    this.ending?.answered({ answer: null, error });
  }

  #end(failed: undefined | Promise<never>): void {
    const { cleanup } = this.place.context;
    cleanup.releases--;
    this.by.settle();
    this.#resolve(failed);
    if (cleanup.isEnding) cleanup.look();
  }
}

/** The place whose hold it was. */
interface Releasing {
  readonly kind: LockKind;
  readonly context: Pick<Port, "commands" | "cleanup" | "events" | "leave">;
  /** Its callers, which get the result that a release has stored. Left out: no release stores any. */
  readonly line?: Pick<Line, "serve">;
  /** Nothing was released, so no message says so. Left out: none ever does. */
  unreleased?(): void;
}

import type { Listed } from "../../index.ts";
import { operatorsReason } from "../../inside.ts";
import { detached } from "../../util/detached.ts";
import { Leaderless } from "./leaderless.ts";
import { LeaseLengths } from "./lease-lengths.ts";
import { OldHoldFinder, type OldHolds } from "./old-hold.ts";
import { type Seen, type Survey, Tally } from "./survey.ts";

/** ms from the end of one look at the locks to the start of the next. */
const PAUSE = 2_000;
/**
 * ms until viewers get the first part of a first look, which may take long. Each part is sent with
 * all earlier ones, so the next part comes after twice the time.
 */
const PART = 400;
/** ms for which the page reports a restart of Redis. */
const TOLD = 15 * 60_000;

/** What is known of the locks at one moment. */
export interface Sight {
  /** Null: no look has ended yet. */
  readonly survey: Survey | null;
  /** Why the last look failed; null: it did not. */
  readonly trouble: string | null;
  /** ms from `survey.at` until there should be a newer one. */
  readonly due: number;
  /** How long the leases of holds are, as far as the looks have shown it. */
  readonly lengths: LeaseLengths;
  /** Null also while the first look has not ended. */
  readonly old: OldHolds<Seen> | null;
  /** Null: none was seen in the last 15 minutes. */
  readonly restart: Restart | null;
}

/** Redis restarted, or another server took its place. */
export interface Restart {
  /** The run id changed. False: Redis did not answer, and then had none of the locks from before. */
  readonly isCertain: boolean;
  /** How many locks were held before, with leases that had not ended. */
  readonly held: number;
  /** How many of them have lost their holders. */
  readonly gone: number;
  /** When it was seen, on the monotonic clock. */
  readonly at: number;
}

/** Looks at the locks every 2 s, once for all viewers, and not at all while there are none. */
export class Watch {
  readonly #list: (signal: AbortSignal) => AsyncIterable<Listed>;
  /** The part of the time that looks may take, however many locks there are. */
  readonly #share: number;
  /** Which run of which server answers now; null: not known. */
  readonly #run: () => string | null;
  readonly #viewers = new Set<(sight: Sight) => void>();
  readonly #lengths = new LeaseLengths();
  readonly #olds = new OldHoldFinder();
  readonly #leaderless = new Leaderless();
  /** ms that the last look took. */
  #took = 0;
  #sight: Sight;
  #stop: AbortController | null = null;
  /** The last look whose server was known. */
  #known: { readonly run: string; readonly survey: Survey } | null = null;

  /** `run` is called at the end of each look. */
  constructor(
    list: (signal: AbortSignal) => AsyncIterable<Listed>,
    share: number,
    run: () => string | null = () => null,
  ) {
    this.#list = list;
    this.#share = share;
    this.#run = run;
    this.#sight = this.#nothing;
  }

  get #nothing(): Sight {
    const known = { lengths: this.#lengths, old: null, restart: null };
    return { survey: null, trouble: null, due: PAUSE, ...known };
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /** The last result, no matter how old. */
  get sight(): Sight {
    return this.#sight;
  }

  /**
   * Calls `viewer` with the last result, or the reason why there is none, unless that is old; and
   * again after each look. Returns a function that stops this.
   */
  view(viewer: (sight: Sight) => void): () => void {
    this.#viewers.add(viewer);
    const { survey, trouble } = this.#sight;
    const isNew = this.#stop !== null || (survey !== null && performance.now() - survey.at < 2 * PAUSE);
    // Other viewers have nothing newer either.
    if (isNew && (survey || trouble !== null)) viewer(this.#sight);
    else if (!isNew) {
      this.#sight = this.#nothing;
      this.#known = null;
    }
    if (!this.#stop && this.#viewers.has(viewer)) {
      this.#stop = new AbortController();
      const { signal } = this.#stop;
      // It goes on for other viewers, and must not run in the context of the first one's request.
      detached(() => void this.#look(signal));
    }
    return () => {
      this.#viewers.delete(viewer);
      if (this.#viewers.size > 0) return;
      this.#stop?.abort();
      this.#stop = null;
    };
  }

  async #look(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const since = performance.now();
      const sight = await this.#see(signal);
      if (signal.aborted) return;
      const took = performance.now() - since;
      if (sight.trouble !== null) {
        this.#tell(sight);
        await pause(PAUSE, signal);
        continue;
      }
      // A look that began while Redis hung does not show how long looks usually take, and the next
      // one must come soon. So looks become rare only after two slow ones in a row.
      const pace = Math.min(took, this.#took);
      this.#took = took;
      const rest = Math.max(PAUSE, pace / this.#share - pace);
      this.#tell({ ...sight, due: rest + took });
      await pause(rest, signal);
    }
  }

  #tell(sight: Sight): void {
    this.#sight = sight;
    for (const viewer of this.#viewers) viewer(sight);
  }

  async #see(signal: AbortSignal): Promise<Sight> {
    const { survey: former } = this.#sight;
    const number = (former?.number ?? 0) + 1;
    const began = performance.now();
    const tally = new Tally(this.#leaderless);
    this.#leaderless.begin();
    let due = performance.now() + PART;
    let parts = 1;
    try {
      for await (const one of this.#list(signal)) {
        tally.add(one);
        if (former || performance.now() < due || signal.aborted) continue;
        const next = PART * 2 ** parts++;
        this.#tell({ ...this.#nothing, survey: tally.survey(number, true), due: next });
        due = performance.now() + next;
      }
    } catch (error) {
      // Half of a first look is better than nothing.
      return { ...this.#sight, trouble: operatorsReason(error) };
    }
    this.#leaderless.end();
    const survey = tally.survey(number, false);
    const holders = survey.locks.flatMap((lock) => lock.holders);
    this.#lengths.see(holders, began, survey.at);
    return { ...this.#nothing, survey, old: this.#olds.see(survey.locks), restart: this.#restart(survey) };
  }

  #restart(survey: Survey): Restart | null {
    const { restart } = this.#sight;
    const told = restart && survey.at - restart.at < TOLD ? restart : null;
    const found = this.#restartBefore(survey);
    // A server that restarts again and again has no locks to lose after the first time.
    return found && (found.gone > 0 || !told?.gone) ? found : told;
  }

  #restartBefore(survey: Survey): Restart | null {
    const { survey: former, trouble } = this.#sight;
    const run = this.#run();
    const known = this.#known;
    if (run !== null) this.#known = { run, survey };
    if (known && run !== null && run !== known.run)
      return { isCertain: true, ...compare(known.survey, survey), at: survey.at };
    if (!former || trouble === null || survey.total > 0) return null;
    const compared = compare(former, survey);
    return compared.gone > 0 ? { isCertain: false, ...compared, at: survey.at } : null;
  }
}

/** What became of the locks that were held, and whose leases have not ended since. */
function compare(before: Survey, after: Survey): Pick<Restart, "held" | "gone"> {
  // A lock that was only counted may still be held.
  if (after.isCut) return { held: 0, gone: 0 };
  const since = after.at - before.at;
  const held = before.locks.filter(({ remaining }) => remaining !== null && remaining > since);
  const holdsOf = ({ kind, name, holders }: Listed) => holders.map(({ id }) => `${kind} ${name} ${id}`);
  const still = new Set(after.locks.flatMap(holdsOf));
  const gone = held.filter((lock) => !holdsOf(lock).some((hold) => still.has(hold)));
  return { held: held.length, gone: gone.length };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, ms).unref();
    signal.addEventListener("abort", over);
  });
}

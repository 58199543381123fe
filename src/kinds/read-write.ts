import { LockError, quote } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import type { HoldingParty } from "../party.ts";
import type { CountedAnswer } from "../redis/counted-replies.ts";
import type { AttemptAnswer, ReleaseAnswer, YieldAnswer } from "../redis/replies.ts";
import type { Ask, LockKind, Meant, Sharing, Told } from "../waiting/lock-kind.ts";
import { asAttempt, CountedKind } from "./counted.ts";
import type { CountedScripts } from "./counted-scripts.ts";

/** All units of a read-write lock: a writer has them all, a reader one. */
const ALL = 1_000_000;

const PARTS = {
  read: { as: "r", units: 1 },
  write: { as: "w", units: ALL },
} as const;

/** The two locks of a read-write lock, as the waiting engine knows them; and the same where each caller has a place of its own. */
export interface ReadWriteKinds {
  readonly read: LockKind;
  readonly write: LockKind;
  readonly fairRead: LockKind;
  readonly fairWrite: LockKind;
}

/** `passes`: how often a writer's hold is passed on in this process before it goes to Redis. */
export function readWriteKinds(scripts: CountedScripts, passes: number): ReadWriteKinds {
  const family = new Family(scripts);
  const read = new ReadWriteKind(scripts, family, "read", 0, false);
  const write = new ReadWriteKind(scripts, family, "write", passes, false);
  const fairWrite = new ReadWriteKind(scripts, family, "write", 0, true);
  family.readers = read;
  family.writers = [write, fairWrite];
  return { read, write, fairRead: new ReadWriteKind(scripts, family, "read", 0, true), fairWrite };
}

/** What readers and writers of one lock are to each other. */
class Family implements Sharing {
  declare readers: LockKind;
  writers: readonly LockKind[] = [];
  readonly #scripts: CountedScripts;

  constructor(scripts: CountedScripts) {
    this.#scripts = scripts;
  }

  join(hold: Hold, lease: number, told: Told<AttemptAnswer>): void {
    const ask = { lease, passes: 0, entryTtl: 0, channel: null, permits: ALL, upTo: 1 } as const;
    this.#scripts.attempt(
      hold,
      { ...ask, mode: "join", ...PARTS.read },
      {
        answered: (answer) => told.answered(asKnown(hold.name, answer, false)),
        failed: (error) => told.failed(error),
      },
    );
  }

  async readersOf(name: string, nonce?: string): Promise<{ readonly held: number; readonly kept: number }> {
    const { holders } = await this.#scripts.inspect(name, false, nonce);
    const readers = holders.filter(({ party }) => party.mode === "read");
    return { held: readers.length, kept: readers.filter(({ kept }) => kept).length };
  }

  answer(name: string, nonce: string, is: "busy" | "idle"): void {
    this.#scripts.tellAsker(name, nonce, is);
  }

  shrink({ id, name, token, passes }: Hold, told: Told<ReleaseAnswer>): void {
    this.#scripts.release({ id, name, token: token + passes }, 1, told);
  }
}

/** One of the two locks: readers, whose callers of one process share a hold; or writers, which are alone. */
class ReadWriteKind extends CountedKind implements LockKind {
  readonly hasTokens = true;
  readonly label: "readLock" | "writeLock";
  readonly eventKind: "read" | "write";
  readonly mode: "read" | "write";
  readonly protocol = "rw";
  readonly sharing: Sharing;
  readonly wake: { readonly by: "grant"; readonly solitary: boolean };
  readonly localHandoffs: number;

  constructor(
    scripts: CountedScripts,
    sharing: Sharing,
    mode: "read" | "write",
    passes: number,
    isFair: boolean,
  ) {
    super(scripts);
    this.label = mode === "read" ? "readLock" : "writeLock";
    this.eventKind = mode;
    this.mode = mode;
    this.sharing = sharing;
    this.wake = { by: "grant", solitary: isFair };
    this.localHandoffs = passes;
  }

  attempt(hold: Hold, ask: Ask, told: Told<AttemptAnswer>): void {
    const mode = ask.mode === "yield" ? "queue" : ask.mode;
    const isWriter = this.mode === "write";
    this.scripts.attempt(
      hold,
      { ...this.#asked(ask), mode, mayStay: ask.told === 2, nonce: isWriter ? ask.nonce : null },
      {
        answered: (answer) => told.answered(asKnown(hold.name, answer, isWriter)),
        failed: (error) => told.failed(error),
      },
    );
  }

  yield(old: Hold, hold: Hold, ask: Ask, told: Told<YieldAnswer>): void {
    this.scripts.yield(
      old,
      0,
      hold,
      { ...this.#asked(ask), mode: "queue" },
      {
        answered: (answer) => {
          if ("clock" in answer) told.answered(answer);
          else told.answered(asKnown(hold.name, answer, true) as YieldAnswer);
        },
        failed: (error) => told.failed(error),
      },
    );
  }

  override readonly releaseAll = (holds: readonly Hold[], isFirst: boolean): Promise<ReleaseAnswer[]> =>
    this.scripts.releaseEach(
      holds.map(({ id, name, token, passes }) => ({ id, name, token: token + passes })),
      isFirst,
    );

  protected override isOwn({ mode }: HoldingParty): boolean {
    return mode === this.mode;
  }

  forceRelease(name: string, label: string | null, meant: Meant): Promise<number> {
    return this.scripts.forceRelease(name, PARTS[this.mode].as, label, meant);
  }

  #asked({ lease, passes, entryTtl, channel }: Ask) {
    const { as, units } = PARTS[this.mode];
    return { lease, entryTtl, channel, as, units, upTo: units, permits: ALL, passes };
  }
}

/** As the engine knows it. `isWriter`: it waits for readers that may have nobody inside; a reader waits for writers only. */
function asKnown(name: string, answer: CountedAnswer, isWriter: boolean): AttemptAnswer {
  if (answer.is === "held" && !isWriter) return asAttempt({ ...answer, told: 0 }, true);
  if (answer.is !== "crowded") return asAttempt(answer, true);
  const why = `Read-write lock ${quote(name)} has 10 000 holders, which is the most: use several locks.`;
  return { is: "refused", at: answer.at, error: new LockError("TOO_MANY_HOLDS", name, why) };
}

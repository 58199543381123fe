import { LockError, quote } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import type { Renewal } from "../lease/renewer.ts";
import type { CountedAnswer } from "../redis/counted-replies.ts";
import type { AttemptAnswer, Inspected, ReleaseAnswer, RenewAnswer, YieldAnswer } from "../redis/replies.ts";
import type { Ask, Leavable, LockKind, Sharing, Told } from "../waiting/lock-kind.ts";
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
        answered: (answer) => told.answered(asAttempt(hold.name, answer)),
        failed: (error) => told.failed(error),
      },
    );
  }

  shrink({ id, name, entry, token, passes }: Hold, told: Told<ReleaseAnswer>): void {
    this.#scripts.release({ id, name, entry, token: token + passes }, 1, told);
  }
}

/** One of the two locks: readers, whose callers of one process share a hold; or writers, which are alone. */
class ReadWriteKind implements LockKind {
  readonly label: "readLock" | "writeLock";
  readonly eventKind: "read" | "write";
  readonly mode: "read" | "write";
  readonly protocol = "rw";
  readonly sharing: Sharing;
  readonly wake: { readonly by: "grant"; readonly solitary: boolean };
  readonly localPasses: number;
  readonly hasStays = false;
  readonly releaseAll = null;
  readonly answer = null;
  readonly recount = null;
  readonly together = null;
  readonly batch: number;
  readonly isConfirmed: boolean;
  readonly #scripts: CountedScripts;

  constructor(
    scripts: CountedScripts,
    sharing: Sharing,
    mode: "read" | "write",
    passes: number,
    isFair: boolean,
  ) {
    this.label = mode === "read" ? "readLock" : "writeLock";
    this.eventKind = mode;
    this.mode = mode;
    this.sharing = sharing;
    this.wake = { by: "grant", solitary: isFair };
    this.localPasses = passes;
    this.batch = scripts.batch;
    this.isConfirmed = scripts.isConfirmed;
    this.#scripts = scripts;
  }

  attempt(hold: Hold, ask: Ask, told: Told<AttemptAnswer>): void {
    const mode = ask.mode === "yield" ? "queue" : ask.mode;
    this.#scripts.attempt(
      hold,
      { ...this.#asked(ask), mode },
      {
        answered: (answer) => told.answered(asAttempt(hold.name, answer)),
        failed: (error) => told.failed(error),
      },
    );
  }

  release({ id, name, entry, token, passes }: Hold, told: Told<ReleaseAnswer>): void {
    this.#scripts.release({ id, name, entry, token: token + passes }, 0, told);
  }

  yield(old: Hold, hold: Hold, ask: Ask, told: Told<YieldAnswer>): void {
    this.#scripts.yield(
      old,
      0,
      hold,
      { ...this.#asked(ask), mode: "queue" },
      {
        answered: (answer) => {
          if ("clock" in answer) told.answered(answer);
          else told.answered(asAttempt(hold.name, answer) as YieldAnswer);
        },
        failed: (error) => told.failed(error),
      },
    );
  }

  withdraw({ id, name, entry = "" }: Leavable): Promise<unknown> {
    return this.#scripts.withdraw({ id, name, entry, token: 0 });
  }

  renew(holds: readonly Renewal[], timeout: number): Promise<RenewAnswer[]> {
    return this.#scripts.renew(holds, timeout);
  }

  confirm(
    hold: { readonly name: string; readonly id: string },
    ttl: number,
    timeout: number,
  ): Promise<RenewAnswer> {
    return this.#scripts.confirm(hold, ttl, timeout);
  }

  /** Of its own holders the first one, and all that wait for the lock, readers and writers. */
  async inspect(name: string): Promise<Inspected> {
    const { holders, waiters } = await this.#scripts.inspect(name);
    const first = holders.find(({ mode }) => mode === this.mode);
    return {
      holder: first?.holder ?? null,
      token: first?.token ?? 0,
      remaining: first?.remaining ?? null,
      kept: false,
      waiters: waiters.map(({ holder }) => holder),
    };
  }

  async forceRelease(name: string, label: string | null): Promise<boolean> {
    return (await this.#scripts.forceRelease(name, PARTS[this.mode].as, label)) > 0;
  }

  #asked({ lease, passes, entryTtl, channel }: Ask) {
    const { as, units } = PARTS[this.mode];
    return { lease, entryTtl, channel, as, units, upTo: units, permits: ALL, passes };
  }
}

/** As the engine knows it. */
function asAttempt(name: string, answer: CountedAnswer): AttemptAnswer {
  switch (answer.is) {
    case "owner": {
      const { at, token, ttl, already, waits } = answer;
      return { is: "owner", at, token, ttl, already, waits, isTold: false };
    }
    case "held": {
      const { at, ttl, position } = answer;
      return { is: "held", at, ttl, position, told: 0 };
    }
    case "crowded": {
      const why = `Read-write lock ${quote(name)} has 10 000 holders, which is the most.`;
      return { is: "refused", at: answer.at, error: new LockError("TOO_MANY_HOLDS", name, why) };
    }
    case "gone":
    case "stale":
      return { is: answer.is, at: answer.at };
  }
  throw new TypeError(`unexpected answer ${answer.is}`);
}

// The kinds whose holds have units of one resource: the two locks of a read-write lock, and
// semaphores. They share their scripts (lua/counted).
import { LockError, PermitsError } from "../api/errors.ts";
import { encodeLabel } from "../api/label.ts";
import type { Inspected } from "../api/lock.ts";
import type { StoredSettings } from "../api/stored-settings.ts";
import type { Hold } from "../core/lease/hold.ts";
import type { WantedPermits } from "../core/lease/terms.ts";
import type {
  Ask,
  AttemptOptions,
  Callback,
  JoinAsk,
  Leavable,
  LockKind,
  Meant,
  Sharing,
  YieldAsk,
} from "../core/lock-kind.ts";
import { ONE } from "../core/permits.ts";
import type { Sent } from "../redis/call.ts";
import { type Answer, type Args, ordered, type Procedure, read } from "../redis/codec.ts";
import { codes } from "../redis/codes.generated.ts";
import type { Commands } from "../redis/commands.ts";
import {
  type CountedAnswer,
  type CountedInspection,
  countedInspectionOf,
  countedOf,
  readTaken,
} from "../redis/counted-replies.ts";
import { unexpected } from "../redis/fields.ts";
import { countedLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  asDigits,
  inspected,
  RELEASED,
  type ReleaseAnswer,
  type YieldAnswer,
} from "../redis/replies.ts";
import type { Script, ScriptKeys } from "../redis/script.ts";
import { micros, Statement } from "../redis/statement.ts";
import { quote } from "../util/quote.ts";
import { entryPrefix, HoldScripts, NEVER } from "./hold-scripts.ts";

/** All units of a read-write lock: a writer has all of them, a reader one. */
const ALL = 1_000_000;

interface Mode {
  readonly label: "readLock" | "writeLock" | "semaphore";
  readonly protocol: "rw" | "semaphore";
  /** Its name in Redis. */
  readonly as: "r" | "w" | "p";
  /** The units of each hold, and how many there are. Null: the caller says. */
  readonly wants: WantedPermits | null;
  /** Permits fence nothing: others hold some at the same time. */
  readonly hasTokens: boolean;
  /** Its name in messages, and the advice when there are too many holders. */
  readonly noun: string;
  readonly cure: string;
}

const READ_WRITE = {
  protocol: "rw",
  hasTokens: true,
  noun: "Read-write lock",
  cure: "use several locks",
} as const;

/** What differs between readers, writers and permits, by the names of their events. */
const MODES: Readonly<Record<"read" | "write" | "semaphore", Mode>> = {
  read: { ...READ_WRITE, label: "readLock", as: "r", wants: { units: 1, of: ALL } },
  write: { ...READ_WRITE, label: "writeLock", as: "w", wants: { units: ALL, of: ALL } },
  semaphore: {
    protocol: "semaphore",
    hasTokens: false,
    noun: "Semaphore",
    cure: "use several semaphores, or let one caller hold the permits of many",
    label: "semaphore",
    as: "p",
    wants: null,
  },
};

/**
 * What a hold asks for: at least `units`, at most `upTo`, out of `of` (0: as many as are stored).
 */
interface Wanted {
  readonly units: number;
  readonly upTo: number;
  readonly of: number;
  readonly passes: number;
}

/** A number as the books in Redis store it. */
const digits = (number: number): string => String(number).padStart(7, "0");

const wholeRelease: Script = { ...lua.release, isWhole: true };

/** An attempt's, whichever script it has sent. */
const PLACES = { ...lua.acquire.form.replies, gone: lua.recheck.form.replies.gone };

/** The server of counted resources. `window`: the longest TTL of a grant, in ms. */
export interface CountedServer {
  readonly commands: Commands;
  readonly replication: Replication | null;
  readonly window: number;
  readonly stored: StoredSettings;
}

/**
 * A lock whose holds have units of one resource: the readers or the writers of a read-write lock,
 * or the callers of a semaphore. Positions of arguments are defined only here and in the headers
 * under lua/counted. When a reply says that one script has not made all grants, the next one is
 * sent at once; a crash in between costs a re-check.
 */
export class CountedKind extends HoldScripts implements LockKind {
  readonly label: Mode["label"];
  readonly eventKind: keyof typeof MODES;
  readonly protocol: Mode["protocol"];
  readonly wake: { readonly by: "grant"; readonly solitary: boolean };
  readonly localHandoffs: number;
  readonly hasTokens: boolean;
  readonly mode?: "read" | "write";
  readonly sharing?: Sharing;
  override readonly policy: LockKind["policy"];
  readonly unitsFreeWithout?: NonNullable<LockKind["unitsFreeWithout"]>;
  readonly yield?: NonNullable<LockKind["yield"]>;
  readonly #mode: Mode;
  readonly #window: number;
  readonly #stored: StoredSettings;
  #latest: { readonly name: string; readonly keys: ScriptKeys } | null = null;

  /**
   * `passes`: how many local hand-offs a hold or permits allow. `isFair`: each caller has its own
   * hold and entry, so that the order holds over all processes. `sharing`: for readers and writers.
   */
  constructor(
    { commands, replication, window, stored }: CountedServer,
    eventKind: keyof typeof MODES,
    passes: number,
    isFair: boolean,
    sharing?: Sharing,
  ) {
    super(commands, replication, lua);
    this.#mode = MODES[eventKind];
    this.#window = window;
    this.#stored = stored;
    this.label = this.#mode.label;
    this.eventKind = eventKind;
    this.protocol = this.#mode.protocol;
    this.hasTokens = this.#mode.hasTokens;
    this.wake = { by: "grant", solitary: isFair };
    this.localHandoffs = passes;
    if (eventKind === "semaphore") {
      this.unitsFreeWithout = (name, holds) => this.#besides(name, holds);
      this.policy = isFair ? "exclusive" : "pooled";
    } else {
      this.mode = eventKind;
      if (sharing) this.sharing = sharing;
      // A fair reader has its own hold.
      this.policy = eventKind === "read" && !isFair ? "shared" : "exclusive";
      // Not for a semaphore: its callers keep their place while their process has permits, so a release
      // need not queue them.
      this.yield = (old, ask) => this.#yield(old, ask);
    }
  }

  attempt(ask: Ask): void {
    const { hold, lease, entryTtl, channel, mode } = ask;
    if (mode === "again") {
      this.#recheck(ask, 0, entryTtl, channel?.counted ?? false);
      return;
    }
    const { commands } = this;
    const keys = this.#keysOf(hold.name);
    const wanted = this.#wanted(ask);
    const { units, upTo, of, passes } = wanted;
    const notAfter = commands.notAfter(keys) * 1_000 || NEVER;
    const entry = mode === "try" ? "" : this.#queued(ask, wanted);
    // A +: its client may cache the hold, and is notified when another process waits.
    const label = ask.flag === 2 ? `+${hold.label}` : hold.label;
    const args = ordered(lua.acquire, {
      hold: hold.id,
      lease,
      notAfter: micros(notAfter),
      mode: this.#mode.as,
      units: digits(units),
      permits: digits(of),
      passes: passes || "",
      upTo: upTo > units ? upTo : "",
      entry,
      label,
      nonce: ask.nonce ?? "",
    });
    commands.send(this.checked(lua.acquire, lua.firstAcquire, keys, args), this.#attempted, ask);
  }

  /** Asks whether more readers may enter a hold, and raises its end if no caller waits. */
  join(ask: JoinAsk): void {
    this.#recheck(ask, 1, 0, false);
  }

  #recheck(ask: Ask | JoinAsk, joins: 0 | 1, entryTtl: number, isCounted: boolean): void {
    const { hold, lease } = ask;
    const args = ordered(lua.recheck, {
      hold: hold.id,
      lease,
      joins,
      entry: this.#entryOf(hold),
      stays: entryTtl,
      counted: isCounted ? 1 : 0,
    });
    const statement = this.checked(lua.recheck, lua.firstRecheck, this.#keysOf(hold.name), args);
    this.commands.send(statement, this.#attempted, ask);
  }

  readonly #attempted = (
    reply: unknown,
    { statement: { keys }, callback: ask, epoch }: Sent<Ask | JoinAsk>,
  ): AttemptAnswer => {
    const wanted = "mode" in ask && ask.mode !== "again" ? this.#wanted(ask) : null;
    const answer = Array.isArray(reply) ? read(PLACES, reply) : readTaken(reply, wanted?.units ?? 1);
    this.knownIn = epoch;
    return this.#answered(countedOf(answer, ask.lease), keys, ask.hold.name, wanted);
  };

  #yield(old: Hold, ask: YieldAsk): void {
    const { hold, lease } = ask;
    const entry = this.#queued(ask, this.#wanted(ask));
    const args = ordered(lua.yield, {
      old: old.id,
      stays: 0,
      present: old.token,
      hold: hold.id,
      lease,
      entry,
    });
    const statement = new Statement(this.commands, lua.yield, this.#keysOf(hold.name), args);
    this.commands.send(statement, this.#yielded, ask);
  }

  readonly #yielded = (
    reply: unknown,
    { statement: { keys }, callback: ask }: Sent<YieldAsk>,
  ): YieldAnswer => {
    const answer = read(lua.yield.form.replies, reply);
    if (answer.is !== "released" && answer.is !== "gone") {
      const placed = countedOf(answer, ask.lease);
      return this.#answered(placed, keys, ask.hold.name, this.#wanted(ask)) as YieldAnswer;
    }
    this.#advance(keys, answer.more);
    return answer;
  };

  #answered(answer: CountedAnswer, keys: ScriptKeys, name: string, wanted: Wanted | null): AttemptAnswer {
    const { noun, cure, wants } = this.#mode;
    this.commands.tellTime(keys, answer.at);
    this.#advance(keys, answer.more);
    if ("other" in answer && answer.other > 0 && wanted)
      this.#stored.ofPermits(name, answer.other, wanted.of);
    switch (answer.is) {
      case "held":
        // A reader waits for writers, which cache no hold.
        return this.mode === "read" ? { ...answer, flag: 0 } : answer;
      case "crowded": {
        const why = `${noun} ${quote(name)} has the maximum of 10 000 holders: ${cure}.`;
        return { is: "refused", at: answer.at, error: new LockError("TOO_MANY_HOLDS", name, why) };
      }
      case "differs": {
        if (wants || !wanted) throw unexpected(answer);
        const error = new PermitsError(name, answer.permits || null, wanted.of || null, wanted.units);
        return { is: "refused", at: answer.at, error };
      }
    }
    return answer;
  }

  #wanted({ head, run, passes }: AttemptOptions): Wanted {
    const { units, of } = this.#mode.wants ?? head?.terms.permits ?? ONE;
    const { upTo, callers } = run ?? { upTo: units, callers: 1 };
    return { units, upTo, of: of ?? 0, passes: passes + callers - 1 };
  }

  #queued(ask: AttemptOptions, { units, upTo, of, passes }: Wanted): string {
    const numbers = `${passes} ${units} ${upTo} ${of}`;
    const { hold } = ask;
    return entryPrefix(ask, this.#window, this.#mode.as, numbers) + hold.id + hold.label;
  }

  /** Its entry, as first queued; "": it was never queued. */
  #entryOf({ id, label = "", entry = "" }: Leavable): string {
    return entry && entry + id + label;
  }

  release(hold: Hold, callback: Callback<ReleaseAnswer>): void {
    this.#end(lua.release, hold, 0, callback);
  }

  /** Leaves a hold `stays` units; 0: it ends. A writer's hold with one unit left is a reader's. */
  shrink(hold: Hold, stays: number, callback: Callback<ReleaseAnswer>): void {
    this.#end(lua.release, hold, stays, callback);
  }

  #end(script: Script, hold: Hold, stays: number, callback: Callback<ReleaseAnswer>): void {
    const { id, name, token, passes } = hold;
    const args = ordered(lua.release, { hold: id, ...(stays > 0 && { stays, present: token + passes }) });
    const statement = new Statement(this.commands, script, this.#keysOf(name), args);
    this.commands.send(statement, this.#released, callback);
  }

  readonly #released = (reply: unknown, { statement }: Sent<unknown>): ReleaseAnswer => {
    if (reply === codes.RELEASED) return RELEASED;
    const answer = read(lua.release.form.replies, reply);
    this.#advance(statement.keys, answer.more);
    return answer;
  };

  /** One command each, sent in one write. */
  readonly releaseAll = (holds: readonly Hold[], isFirst: boolean): Promise<ReleaseAnswer[]> =>
    Promise.all(
      holds.map(
        (hold, i) =>
          new Promise<ReleaseAnswer>((answered, failed) => {
            // RACE: a process that is ending reads no answer, so it would not learn that the server
            // does not know the script. So the first command brings its text; in Cluster each one
            // does, because each may go to another server.
            const isWhole = (isFirst && i === 0) || this.commands.isCluster;
            this.#end(isWhole ? wholeRelease : lua.release, hold, 0, { answered, failed });
          }),
      ),
    );

  /** Removes a hold from queue and hash. */
  withdraw(hold: Leavable): Promise<unknown> {
    return this.#run(lua.leave, hold.name, { hold: hold.id, entry: this.#entryOf(hold) });
  }

  /** The first of this kind's own holders, and all waiters of the resource. */
  async inspect(name: string): Promise<Inspected> {
    const { at, holders, waiters } = await this.look(name);
    const own = holders.filter(({ party }) => party.mode === (this.mode ?? null));
    const kept = own.length > 0 && own.every((holder) => holder.kept);
    return inspected(own[0]?.party ?? null, waiters, at, kept);
  }

  /** The first holder of any kind: writers wait for readers, too. */
  override async holder(name: string): Promise<Inspected> {
    const { at, holders } = await this.#inspect(name, { one: 1 });
    return inspected(holders[0]?.party ?? null, [], at);
  }

  /**
   * All holders and waiters. `nonce`: asks clients that may have a hold cached whether it is idle.
   */
  look(name: string, nonce?: string): Promise<CountedInspection> {
    return this.#inspect(name, { nonce });
  }

  async #inspect(name: string, args: Args<typeof lua.inspect>): Promise<CountedInspection> {
    return countedInspectionOf(await this.commands.run(lua.inspect, this.#keysOf(name), args));
  }

  async #besides(name: string, holds: readonly Hold[]): Promise<number> {
    const { permits, holders } = await this.look(name);
    const ids = new Set(holds.map(({ id }) => id));
    return holders.reduce(
      (left, { hold, party }) => (ids.has(hold) ? left - party.units : left),
      permits ?? Number.POSITIVE_INFINITY,
    );
  }

  /** Ends all holds of this kind, or the meant one. */
  async forceRelease(name: string, label: string | null, { holder, token }: Meant): Promise<number> {
    let meant = "";
    if (holder !== null) {
      // The id shown to people is shorter than the stored one.
      const { holders } = await this.look(name);
      const seen = holders.find(({ party }) => party.id === holder);
      if (!seen) return 0;
      meant = seen.hold;
    }
    const args = { mode: this.#mode.as, label: encodeLabel(label), token: asDigits(token), holder: meant };
    return (await this.#run(lua.forceRelease, name, args)).count;
  }

  /**
   * Sets a semaphore's number to `permits`, whatever the code of callers says. Two commands: with
   * the first one's stamp, a late copy of the second overwrites no later number.
   */
  async setPermits(name: string, permits: number): Promise<Answer<typeof lua.setPermits.form.replies>> {
    // RACE: acquires of this client may be answered before this command is.
    this.#stored.setsPermits(name, permits);
    const { stamp } = await this.look(name);
    return this.#run(lua.setPermits, name, { permits, stamp });
  }

  protected override keyOf(name: string): string {
    return this.#keysOf(name).names[0] ?? "";
  }

  async #run<P extends Procedure>(
    script: P,
    name: string,
    args: Args<P>,
  ): Promise<Answer<P["form"]["replies"]>> {
    const keys = this.#keysOf(name);
    const answer = await this.commands.run(script, keys, args);
    if ("more" in answer) this.#advance(keys, Boolean(answer.more));
    return answer;
  }

  #advance(keys: ScriptKeys, isNeeded = false): void {
    if (!isNeeded) return;
    this.commands.run(lua.advance, keys, {}).then(
      ({ more }) => this.#advance(keys, more),
      () => {},
    );
  }

  #keysOf(name: string): ScriptKeys {
    if (this.#latest?.name !== name) {
      const { hash, queue, clients, clock } = this.commands.keys.ofCounted(this.protocol, name);
      this.#latest = { name, keys: this.commands.keysOf([hash, queue, clients, clock]) };
    }
    return this.#latest.keys;
  }
}

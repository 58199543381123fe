import { GRANT_WINDOW } from "../defaults.ts";
import { encodeLabel } from "../label.ts";
import type { Asked } from "../redis/call.ts";
import { plain } from "../redis/call.ts";
import type { Commands } from "../redis/commands.ts";
import {
  type CountedAnswer,
  type CountedInspection,
  type CountedRelease,
  decodeCounted,
  decodeCountedInspection,
  decodeCountedRelease,
  decodeCountedYield,
  decodeSetPermits,
  decodeTaken,
} from "../redis/counted-replies.ts";
import { Fields } from "../redis/fields.ts";
import { countedLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import { asDigits, undecoded } from "../redis/replies.ts";
import type { Script, ScriptKeys } from "../redis/script.ts";
import type { Ask, Meant, Told } from "../waiting/lock-kind.ts";
import { HoldScripts } from "./hold-scripts.ts";

const wholeRelease: Script = { ...lua.release, isWhole: true };

/** No reply has told the server's time: a command may be executed whenever it comes. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** The place of the units among the arguments of an acquire. */
const UNITS = 4;

/** As the books have a number. */
const digits = (number: number): string => String(number).padStart(7, "0");

/** Of a counted resource. */
interface CountedHold {
  readonly id: string;
  readonly name: string;
  /** As `Hold` has it. */
  readonly label: string;
  /** Its entry in the queue up to its id, as it was first made; empty: it has none. */
  entry: string;
}

/** One that is held. `token`: its present one, passes included. */
interface Held {
  readonly id: string;
  readonly name: string;
  readonly token: number;
}

/** What a hold asks for. */
interface CountedAsk extends Pick<Ask, "lease" | "passes" | "entryTtl" | "channel"> {
  /** "try" once, "queue" when it does not fit, look "again" from the queue, "join" a hold that readers share. */
  readonly mode: "try" | "queue" | "again" | "join";
  readonly as: "r" | "w" | "p";
  /** At least so many units, up to so many. */
  readonly units: number;
  readonly upTo: number;
  /** How many there are by the caller's code; null: as many as are stored. */
  readonly permits: number | null;
  /** Its client may keep the hold with nobody inside, and is to be told when somebody waits. Left out: no. */
  readonly mayStay?: boolean;
  /** See `Ask`. Left out: nobody is asked. */
  readonly nonce?: string | null;
}

/**
 * The scripts of read-write locks and semaphores, called. Positions of arguments stand here and in the headers under lua/counted,
 * nowhere else. Where a reply says that more is to be granted than one script grants, the next one is sent at once; a crash in
 * between costs a re-check.
 */
export class CountedScripts extends HoldScripts {
  readonly #family: "rw" | "semaphore";
  readonly #window: number;
  #latest: { readonly name: string; readonly keys: ScriptKeys } | null = null;

  /** `window`: the longest TTL of a grant, in ms. */
  constructor(
    commands: Commands,
    replication: Replication | null,
    family: "rw" | "semaphore",
    window: number,
  ) {
    super(commands, replication, lua);
    this.#family = family;
    this.#window = window;
  }

  attempt(hold: CountedHold, ask: CountedAsk, told: Told<CountedAnswer>): void {
    const { commands } = this;
    const keys = this.#keysOf(hold.name);
    const isKnown = this.knownIn === commands.epoch;
    const { mode, lease, entryTtl, channel } = ask;
    const isNew = mode === "try" || mode === "queue";
    const { mayStay = false, nonce = null } = ask;
    let args: (string | number)[];
    if (isNew) {
      const notAfter = commands.notAfter(keys) * 1_000 || NEVER;
      args = [hold.id, lease, notAfter, ask.as, digits(ask.units), digits(ask.permits ?? 0)];
      const upTo = ask.upTo > ask.units ? ask.upTo : "";
      const label = mayStay ? `+${hold.label}` : hold.label;
      // Each argument costs the server more than a thousand instructions, so those at the end that say nothing are left out.
      if (mode === "queue" || label !== "" || nonce !== null) {
        args.push(ask.passes || "", upTo, mode === "queue" ? this.#entryOf(hold, ask) : "");
        if (label !== "" || nonce !== null) args.push(label);
        if (nonce !== null) args.push(nonce);
      } else if (upTo !== "") args.push(ask.passes || "", upTo);
      else if (ask.passes > 0) args.push(ask.passes);
    } else {
      args = [
        hold.id,
        lease,
        mode === "join" ? "1" : "0",
        hold.entry && hold.entry + hold.id + hold.label,
        entryTtl,
        channel?.counted ? "1" : "0",
      ];
    }
    const script = isNew
      ? isKnown
        ? lua.acquire
        : lua.firstAcquire
      : isKnown
        ? lua.recheck
        : lua.firstRecheck;
    // Behind a look at the rights, for a connection whose rights are not known.
    if (!isKnown) args.push(commands.keys.anyChannel);
    commands.send(script, keys, args, this.#attempted, told);
  }

  readonly #attempted = (reply: unknown, call: Asked): CountedAnswer => {
    const answer = Array.isArray(reply)
      ? decodeCounted(plain(reply), Number(call.argv[1]))
      : decodeTaken(reply, Number(call.argv[1]), Number(call.argv[UNITS]));
    this.commands.tellTime(call.keys, answer.at);
    this.knownIn = call.epoch;
    this.#advance(call.keys, answer);
    return answer;
  };

  /** Ends a hold, or leaves it fewer units. `isWhole`: the script goes with it. */
  release({ id, name, token }: Held, stays: number, told: Told<CountedRelease>, isWhole = false): void {
    const script = isWhole ? wholeRelease : lua.release;
    const args = stays > 0 ? [id, stays, token] : [id];
    this.commands.send(script, this.#keysOf(name), args, this.#released, told);
  }

  /** Ends holds, by a command each: they go together, in one write. `isFirst`: none has gone just before them. */
  releaseEach(holds: readonly Held[], isFirst: boolean): Promise<CountedRelease[]> {
    const { isCluster } = this.commands;
    return Promise.all(
      holds.map(
        (hold, i) =>
          new Promise<CountedRelease>((answered, failed) => {
            // RACE: a process that ends reads no answer, and could not send the script behind one that says that it is not known.
            // So the first one brings it to the server; in Cluster each does, because each may go to another server.
            this.release(hold, 0, { answered, failed }, (isFirst && i === 0) || isCluster);
          }),
      ),
    );
  }

  readonly #released = (reply: unknown, call: Asked): CountedRelease => {
    const answer = decodeCountedRelease(plain(reply));
    this.#advance(call.keys, answer);
    return answer;
  };

  /** The same, and queues a new hold behind those that wait. */
  yield(
    old: Held,
    stays: number,
    hold: CountedHold,
    ask: CountedAsk,
    told: Told<CountedAnswer | CountedRelease>,
  ): void {
    const args = [old.id, stays, old.token, hold.id, ask.lease, this.#entryOf(hold, ask)];
    this.commands.send(lua.yield, this.#keysOf(hold.name), args, this.#yielded, told);
  }

  readonly #yielded = (reply: unknown, call: Asked): CountedAnswer | CountedRelease => {
    const answer = decodeCountedYield(plain(reply), Number(call.argv[4]));
    if ("at" in answer) this.commands.tellTime(call.keys, answer.at);
    this.#advance(call.keys, answer);
    return answer;
  };

  /** Takes a hold out of queue and hash. */
  withdraw({ id, name, label, entry }: CountedHold): Promise<CountedRelease> {
    return this.#run(lua.leave, name, [id, entry && entry + id + label], this.#released);
  }

  /**
   * From now on there are so many permits, whatever anybody's code says. Two commands: with the stamp of the first one a late
   * copy of the second undoes no later number.
   */
  async setPermits(name: string, permits: number): Promise<ReturnType<typeof decodeSetPermits>> {
    const { stamp } = await this.inspect(name);
    return this.#run(lua.setPermits, name, [permits, stamp], (reply, call) => {
      const answer = decodeSetPermits(plain(reply));
      this.#advance(call.keys, answer);
      return answer;
    });
  }

  /** `isOne`: only one of its holds is wanted. `nonce`: clients that may keep a hold with nobody inside are asked; left out: none is. */
  inspect(name: string, isOne = false, nonce?: string): Promise<CountedInspection> {
    const args = nonce === undefined ? (isOne ? ["1"] : []) : ["", nonce];
    return this.commands.run(lua.inspect, this.#keysOf(name), args, decodeCountedInspection);
  }

  /** Ends all holds, those of one mode, or the one that is meant. `label`: for their clients. Resolves with how many there were. */
  async forceRelease(
    name: string,
    as: "r" | "w" | "p" | null,
    label: string | null,
    { holder, token }: Meant,
  ): Promise<number> {
    const args = [as ?? "", encodeLabel(label), asDigits(token)];
    if (holder !== null) {
      // People are shown less of it than stands there.
      const { holders } = await this.inspect(name);
      const seen = holders.find(({ party }) => party.id === holder);
      if (!seen) return 0;
      args.push(seen.hold);
    }
    return this.#run(lua.forceRelease, name, args, (reply, call) => {
      const from = new Fields(plain(reply));
      const count = from.number();
      this.#advance(call.keys, { more: from.flag() });
      return count;
    });
  }

  protected override keyOf(name: string): string {
    return this.#keysOf(name).names[0] ?? "";
  }

  #run<T>(
    script: (typeof lua)[keyof typeof lua],
    name: string,
    args: (string | number)[],
    decode: (reply: unknown, call: Asked) => T,
  ): Promise<T> {
    return new Promise((answered, failed) => {
      this.commands.send(script, this.#keysOf(name), args, decode, { answered, failed });
    });
  }

  #advance(keys: ScriptKeys, answer: { readonly is?: string; readonly more?: boolean }): void {
    if (!answer.more) return;
    const again = (more: unknown): void => this.#advance(keys, { more: more === 1 });
    this.commands.run(lua.advance, keys, [], undecoded).then(again, () => {});
  }

  #keysOf(name: string): ScriptKeys {
    if (this.#latest?.name !== name) {
      const { hash, queue, clients, clock } = this.commands.keys.ofCounted(this.#family, name);
      this.#latest = { name, keys: this.commands.keysOf([hash, queue, clients, clock]) };
    }
    return this.#latest.keys;
  }

  /** A hold's entry in the queue: as it is made, it stays, because every later command names it. */
  #entryOf(hold: CountedHold, { as, lease, passes, units, upTo, permits, channel }: CountedAsk): string {
    // RACE: a waiter that hears nothing finds its grant when it looks again. The grant must live until then, however short
    // the waiter's lease.
    const shortest = channel?.isHeard === false ? Math.max(lease, GRANT_WINDOW) : lease;
    const counted = channel?.counted ? 1 : 0;
    hold.entry ||= `${counted}${as} ${Math.min(shortest, this.#window)} ${passes} ${units} ${upTo} ${permits ?? 0} `;
    return hold.entry + hold.id + hold.label;
  }
}

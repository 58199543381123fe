import {
  type AttemptAnswer,
  decodeAttempt,
  decodeForced,
  decodeInspection,
  decodeRelease,
  decodeRenewal,
  decodeRenewals,
  type Inspection,
  type ReleaseAnswer,
  type RenewAnswer,
} from "./answers.ts";
import type { Commands } from "./commands.ts";
import { spinLua as lua } from "./lua.generated.ts";
import type { Replication } from "./replication.ts";
import { Rights } from "./rights.ts";

/** The scripts of the spin lock as typed calls. Its name is its key. */
export class SpinScripts {
  readonly #commands: Commands;
  readonly #replication: Replication | null;
  readonly #rights: Rights;

  constructor(commands: Commands, replication: Replication | null) {
    this.#commands = commands;
    this.#replication = replication;
    this.#rights = new Rights(commands);
  }

  acquire(name: string, owner: string, lease: number): Promise<AttemptAnswer> {
    const clock = this.#commands.keys.clock(name);
    const args = [owner, lease, this.#commands.notAfter(clock), this.#rights.isKnown ? 0 : 1];
    const decode = this.#rights.learning(this.#commands.timed(clock, decodeAttempt));
    return this.#commands.run(lua.acquire, [name], args, decode);
  }

  release(name: string, owner: string): Promise<ReleaseAnswer> {
    return this.#commands.run(lua.release, [name], [owner], decodeRelease);
  }

  renew(
    holds: readonly { name: string; id: string; ttl: number }[],
    timeout: number,
  ): Promise<RenewAnswer[]> {
    const keys = holds.map((hold) => hold.name);
    const args = holds.flatMap((hold) => [hold.id, hold.ttl]);
    return this.#commands.run(lua.renew, keys, args, decodeRenewals, timeout);
  }

  claim(name: string, owner: string, ttl: number, timeout: number): Promise<RenewAnswer> {
    if (this.#replication) return this.#replication.confirm(name, name, lua.confirm, [owner, ttl], timeout);
    return this.#commands.run(lua.renew, [name], [owner, ttl], decodeRenewal, timeout);
  }

  inspect(name: string): Promise<Inspection> {
    return this.#commands.run(lua.inspect, [name], [], decodeInspection);
  }

  forceRelease(name: string): Promise<boolean> {
    return this.#commands.run(lua.forceRelease, [name], [], decodeForced);
  }
}

import type { Replication } from "../redis/replication.ts";
import { decodeRenewal, decodeRenewals, type RenewAnswer } from "../redis/replies.ts";
import type { Script } from "../redis/script.ts";
import type { ScriptRunner } from "../redis/script-runner.ts";
import { Rights } from "./rights.ts";

/** What the scripts of every protocol on one Redis need, and how they keep a hold: `renew` and `confirm` take the same arguments everywhere. */
export abstract class HoldScripts {
  protected readonly commands: ScriptRunner;
  protected readonly rights: Rights;
  readonly #replication: Replication | null;
  readonly #lua: { readonly renew: Script; readonly confirm: Script };

  constructor(
    commands: ScriptRunner,
    replication: Replication | null,
    lua: { readonly renew: Script; readonly confirm: Script },
  ) {
    this.commands = commands;
    this.rights = new Rights(commands);
    this.#replication = replication;
    this.#lua = lua;
  }

  /** True: no caller gets a lock before it is confirmed. */
  get isConfirmed(): boolean {
    return this.#replication !== null;
  }

  renewAt(
    holds: readonly { key: string; id: string; ttl: number }[],
    timeout: number,
  ): Promise<RenewAnswer[]> {
    const keys = holds.map((hold) => hold.key);
    const args = holds.flatMap((hold) => [hold.id, hold.ttl]);
    return this.commands.run(this.#lua.renew, keys, args, decodeRenewals, timeout);
  }

  /** `name`: of the lock, `key`: where it is. With replicas it is theirs to confirm. */
  confirmAt(name: string, key: string, hold: string, ttl: number, timeout: number): Promise<RenewAnswer> {
    const { renew, confirm } = this.#lua;
    if (this.#replication) return this.#replication.confirm(name, key, confirm, [hold, ttl], timeout);
    return this.commands.run(renew, [key], [hold, ttl], decodeRenewal, timeout);
  }
}

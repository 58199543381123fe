import type { Commands } from "../redis/commands.ts";
import type { LockKeys } from "../redis/keys.ts";
import type { ScriptKeys } from "../redis/script.ts";

/**
 * The keys of a lock. A hold keeps them as its kind's record, from its first command to its
 * release.
 */
export class HandoffKeys {
  readonly name: string;
  readonly lock: string;
  readonly script: ScriptKeys;

  constructor(name: string, { lock, queue, clients, clock }: LockKeys, commands: Commands) {
    this.name = name;
    this.lock = lock;
    this.script = commands.keysOf([lock, queue, clients, clock]);
  }
}

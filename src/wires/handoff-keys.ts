import type { AttemptOptions } from "../core/lock-kind.ts";
import type { Commands } from "../redis/commands.ts";
import type { LockKeys } from "../redis/keys.ts";
import type { ScriptKeys } from "../redis/script.ts";
import type { PreparedStatement } from "../redis/statement.ts";

/** An acquire as it was sent last: the next one is usually the same but for its hold and its time. */
interface LastAcquire {
  readonly mode: AttemptOptions["mode"];
  readonly lease: number;
  readonly passes: number;
  readonly reserves: number;
  readonly flag: number;
  /** Of the channel that its entry names. */
  readonly isHeard: boolean;
  readonly counted: boolean;
  readonly entry: string;
  readonly statement: PreparedStatement;
}

/** The keys of a lock, and its commands with them. */
export class HandoffKeys {
  readonly name: string;
  readonly lock: string;
  readonly script: ScriptKeys;
  acquire: LastAcquire | null = null;
  release: PreparedStatement | null = null;

  constructor(name: string, { lock, queue, clients, clock }: LockKeys, commands: Commands) {
    this.name = name;
    this.lock = lock;
    this.script = commands.keysOf([lock, queue, clients, clock]);
  }
}

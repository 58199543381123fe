import { spinLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  decodeAttempt,
  decodeForced,
  decodeInspection,
  decodeRelease,
  type Inspected,
  type ReleaseAnswer,
} from "../redis/replies.ts";
import type { ScriptRunner } from "../redis/script-runner.ts";
import { HoldScripts } from "./renewing.ts";

/** The scripts of the spin lock as typed calls. Its name is its key. */
export class SpinScripts extends HoldScripts {
  constructor(commands: ScriptRunner, replication: Replication | null) {
    super(commands, replication, lua);
  }

  acquire(name: string, owner: string, lease: number): Promise<AttemptAnswer> {
    const clock = this.commands.keys.clock(name);
    const args = [owner, lease, this.commands.notAfter(clock), this.rights.isKnown ? 0 : 1];
    const decode = this.rights.learning(this.commands.timed(clock, decodeAttempt));
    return this.commands.run(lua.acquire, [name], args, decode);
  }

  release(name: string, owner: string): Promise<ReleaseAnswer> {
    return this.commands.run(lua.release, [name], [owner], decodeRelease);
  }

  inspect(name: string): Promise<Inspected> {
    return this.commands.run(lua.inspect, [name], [], decodeInspection);
  }

  forceRelease(name: string): Promise<boolean> {
    return this.commands.run(lua.forceRelease, [name], [], decodeForced);
  }
}

import type { Inspected } from "../api/lock.ts";
import type { Hold } from "../core/lease/hold.ts";
import {
  type Ask,
  type Callback,
  type Leavable,
  type LockKind,
  type Meant,
  tell,
} from "../core/lock-kind.ts";
import { SPIN_MAX, SPIN_MIN, SPIN_SPREAD } from "../defaults.ts";
import { ordered, read } from "../redis/codec.ts";
import type { Commands } from "../redis/commands.ts";
import type { Replication } from "../redis/replication.ts";
import { inspectionOf, type ReleaseAnswer } from "../redis/replies.ts";
import { Statement } from "../redis/statement.ts";
import { between } from "../util/random.ts";
import { HoldScripts } from "./hold-scripts.ts";
import { spinLua as lua } from "./spin-lua.generated.ts";

/**
 * The well-known lock: SET NX PX under the lock's name, compare-and-delete, and tries
 * with an exponential back-off (Redisson's RSpinLock: 1, 2, 4 … 128 ms). For servers without
 * pub/sub, for sharing a lock with redis-py, bsm/redislock, redlock on one node or redis-semaphore,
 * and for comparison.
 *
 * It has no fencing tokens. An INCR in the script would count only the holders of this library:
 * after one of another library, the token would say nothing about the last writer.
 */
export class SpinKind extends HoldScripts implements LockKind {
  readonly label = "spinLock";
  readonly eventKind = "spin";
  readonly protocol = "spin";
  readonly wake: LockKind["wake"] = { by: "time", pause: backOff };
  readonly localHandoffs: number;
  readonly hasTokens = false;
  readonly #attempted = this.attempted((reply) => read(lua.acquire.form.replies, reply));

  constructor(commands: Commands, replication: Replication | null, passes: number) {
    super(commands, replication, lua);
    this.localHandoffs = passes;
  }

  attempt(ask: Ask): void {
    const { commands } = this;
    const { name, id } = ask.hold;
    const keys = commands.keysOf([name]);
    const first = this.knownIn === commands.epoch ? 0 : 1;
    const args = ordered(lua.acquire, {
      owner: id,
      lease: ask.lease,
      notAfter: commands.notAfter(keys),
      first,
    });
    commands.send(new Statement(commands, lua.acquire, keys, args), this.#attempted, ask);
  }

  withdraw({ name, id }: Leavable): Promise<ReleaseAnswer> {
    return this.commands.run(lua.release, [name], { owner: id });
  }

  release(hold: Hold, callback: Callback<ReleaseAnswer>): void {
    tell(this.withdraw(hold), callback);
  }

  async inspect(name: string): Promise<Inspected> {
    return inspectionOf(await this.commands.run(lua.inspect, [name], {}));
  }

  async forceRelease(name: string, _label: string | null, { holder }: Meant): Promise<number> {
    const { commands } = this;
    const owner = holder && (await this.holderWith(holder, commands.run(lua.inspect, [name], {})));
    if (holder !== null && owner === null) return 0;
    return (await commands.run(lua.forceRelease, [name], { owner: owner ?? undefined })).count;
  }
}

/**
 * The pause before the n-th further try, in ms. Without the spread, processes that began together
 * would always try together.
 */
function backOff(tries: number): number {
  return Math.min(SPIN_MAX, SPIN_MIN * 2 ** Math.min(tries, 10)) * between(1 - SPIN_SPREAD, 1);
}

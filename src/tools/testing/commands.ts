import type { Settings } from "../../api/options.ts";
import { redissonLua } from "../../kinds/redisson-lua.generated.ts";
import { spinLua } from "../../kinds/spin-lua.generated.ts";
import { type Callback, type Decode, plain } from "../../redis/call.ts";
import { connectionLua } from "../../redis/client-lua.generated.ts";
import type { Commands } from "../../redis/commands.ts";
import { Keys } from "../../redis/keys.ts";
import * as lua from "../../redis/lua.generated.ts";
import { type Script, ScriptKeys } from "../../redis/script.ts";
import { counted } from "./counted.ts";
import { elections } from "./elections.ts";
import { handOff } from "./hand-off.ts";
import type { Memory, Reply, Run } from "./memory.ts";
import { once } from "./once.ts";
import { others } from "./others.ts";
import { waits } from "./waits.ts";

/** Each script in a memory, by its name: kinds send variants of some. */
function scriptsOf(memory: Memory): ReadonlyMap<string, Run> {
  const plain = others(memory);
  const handoff = handOff(memory);
  // It has no channel and no token before the meant owner.
  const spin = {
    ...plain,
    forceRelease: (keys, [owner = ""]) => plain.forceRelease(keys, ["", "", owner]),
  } satisfies Record<string, Run>;
  const families: [Readonly<Record<string, Script>>, Readonly<Record<string, Run>>][] = [
    [lua.handoffLua, handoff],
    [lua.electionLua, elections(memory)],
    [lua.countedLua, counted(memory)],
    [lua.onceLua, once(memory)],
    [lua.deadlocksLua, waits(memory)],
    [redissonLua, plain],
    [spinLua, spin],
    [lua.listLua, { redisson: plain.inspect, locks: inspectAll(memory, handoff.inspect) }],
  ];
  const known = new Map<string, Run>();
  for (const [scripts, runs] of families)
    for (const [word, { name }] of Object.entries(scripts)) {
      const run = runs[word];
      if (run) known.set(name, run);
    }
  return known;
}

/** For several locks at a time. */
const inspectAll =
  (db: Memory, inspect: Run): Run =>
  (keys, argv) => [
    db.now,
    ...keys.flatMap((lock, i) => {
      if (i % 2 === 1) return [];
      const [, ...shown] = inspect([lock, keys[i + 1] ?? ""], argv) as readonly Reply[];
      return [shown];
    }),
  ];

/**
 * In ioredis's form: texts are Buffers, because a string would be a number that ioredis turned into
 * text.
 */
const wired = (reply: Reply): unknown =>
  typeof reply === "string" ? Buffer.from(reply) : typeof reply === "number" ? reply : reply.map(wired);

/** Runs a client's scripts in memory: no answer and no connection is ever lost. */
export class MemoryCommands implements Commands {
  readonly replyTimeout: number;
  readonly keys: Keys;
  readonly isCluster = false;
  readonly epoch = 0;
  readonly heldUntil = Number.NEGATIVE_INFINITY;
  /** Each runs in one turn of the event loop, in order: none can overtake another one. */
  readonly unanswered = [];
  readonly isAway = false;
  readonly ended = false;
  readonly #memory: Memory;
  readonly #scripts: ReadonlyMap<string, Run>;
  onLost = (): void => {};
  onReconnect = (): void => {};
  onEnd = (): void => {};

  constructor(memory: Memory, { replyTimeout, prefix }: Pick<Settings, "replyTimeout" | "prefix">) {
    this.keys = new Keys(prefix, false);
    this.#memory = memory;
    this.#scripts = scriptsOf(memory);
    this.replyTimeout = replyTimeout;
  }

  keysOf(names: readonly string[]): ScriptKeys {
    return new ScriptKeys(this.keys.prefix, names);
  }

  send<Answer>(
    script: Script,
    keys: ScriptKeys,
    argv: readonly (string | number | Buffer)[],
    decode: Decode<Answer>,
    callback: Callback<Answer>,
  ): void {
    this.#memory.soon(() => {
      try {
        const words = argv.map((word) => (Buffer.isBuffer(word) ? word.toString() : word));
        callback.answered(
          decode(wired(this.#run(script, keys.full, words)), { script, keys, argv, epoch: 0 }),
        );
      } catch (error) {
        callback.failed(error);
      }
    });
  }

  run<T>(
    script: Script,
    keys: ScriptKeys | readonly string[],
    argv: readonly (string | number | Buffer)[],
    decode: (answer: unknown) => T,
  ): Promise<T> {
    const made = keys instanceof ScriptKeys ? keys : this.keysOf(keys);
    return new Promise((answered, failed) => {
      this.send(script, made, argv, (reply) => decode(plain(reply)), { answered, failed });
    });
  }

  #run(script: Script, keys: readonly string[], argv: readonly (string | number)[]): Reply {
    if (script === connectionLua.probe) return this.#memory.publish(String(argv[0]), String(argv[1]));
    const run = this.#scripts.get(script.name);
    if (!run) throw new Error(`the memory of a test has no script ${script.name}`);
    return run(keys, argv);
  }

  tellTime(): void {}

  notAfter(_key: unknown, timeout = this.replyTimeout): number {
    return Math.ceil(this.#memory.now / 1_000 + timeout);
  }

  mayHaveReached(): boolean {
    return true;
  }

  trouble(): Error {
    return new Error("the memory of a test has not answered");
  }

  flush(): void {}

  detach(): void {}
}

import { Redis } from "ioredis";
import { type LocalServer, launchServer } from "../../../tools/redis/index.ts";
import { type Execution, type KeyState, type State, scripts } from "./execution.ts";

/** What a real server did with an execution. */
export interface Outcome {
  readonly reply: Answer;
  /** All keys that exist afterwards. */
  readonly after: State;
  readonly messages: readonly string[];
  /** By how much the server's ms had changed after its keys got their ends, when they were read again. */
  readonly elapsed: number;
}

type Pipeline = ReturnType<Redis["pipeline"]>;

/** A status is a text, as drivers read it. Of an error: its text as the server sends it. */
export type Answer = null | number | string | readonly Answer[] | Error;

/**
 * Lua that comes before a script, on its first line. Inside the script the time, the receivers of
 * messages and the text of INFO are those of the recording; messages are kept in a list. Everything
 * else is the server's. The last of ARGV are: the counts by channel, the texts by section, how many
 * of the two, and the time.
 */
const RECORDED = `local redis = (function(R)
local pop = function() return table.remove(ARGV) end
local micros, seconds, counts, texts = pop(), pop(), {}, {}
for _, known in ipairs({ texts, counts }) do
for i = 1, tonumber(pop()) do local value = pop() known[pop()] = value end
end
local function over(f)
return function(...)
local words = { ... }
for i = 1, select("#", ...) do if type(words[i]) ~= "string" then return f(...) end end
local name = words[1]
if name == "TIME" then return { seconds, micros } end
if name == "INFO" then return texts[words[2] or ""] end
if name == "PUBLISH" and #words == 3 then
R.call("RPUSH", "messages", words[2], words[3])
return tonumber(counts[words[2]])
end
if name == "PUBSUB" and words[2] == "NUMSUB" then
local all = {}
for i = 3, #words do all[#all + 1] = words[i] all[#all + 1] = tonumber(counts[words[i]]) end
return all
end
return f(...)
end
end
return setmetatable({ call = over(R.call), pcall = over(R.pcall) }, { __index = R })
end)(redis) `.replaceAll("\n", " ");

/** The keys with their ends first, because the time goes on; then the messages and the values. */
const LOOK = `local keys, all = redis.call("KEYS", "*"), {}
for i, key in ipairs(keys) do
all[i] = { key, redis.call("PTTL", key), redis.call("TYPE", key).ok }
end
for _, one in ipairs(all) do
local key, kind = one[1], one[3]
if kind == "string" then one[4] = { redis.call("GET", key) }
elseif kind == "hash" then one[4] = redis.call("HGETALL", key)
elseif kind == "zset" then one[4] = redis.call("ZRANGE", key, 0, -1, "WITHSCORES")
else one[4] = redis.call("LRANGE", key, 0, -1) end
end
return all`;

/**
 * Gives keys an end and works until it has come. ARGV: how many ms and parts of a ms after that. Since
 * 7.2 TIME stands still while a script runs, and os.clock does not; 6.2 has no os.clock.
 */
const END = `local os = rawget(_G, "os")
local function now()
local time = redis.call("TIME")
return os and os.clock() * 1000 or time[1] * 1000 + time[2] / 1000
end
local time, since = redis.call("TIME"), now()
local millis = time[1] * 1000 + math.floor(time[2] / 1000)
for _, key in ipairs(KEYS) do redis.call("PEXPIREAT", key, millis + 1) end
repeat until now() - since >= 1 - time[2] % 1000 / 1000 + ARGV[1]`;

/** So many executions are on their way at a time. */
const AT_ONCE = 250;

/** A server of its own that runs recorded executions again. */
export class RealServer {
  /** Such as "Redis 7.0.15". */
  readonly name: string;
  readonly #server: LocalServer;
  readonly #redis: Redis;
  readonly #shas = new Map<string, string>();
  readonly #tools: { readonly look: string; readonly end: string };

  private constructor(
    name: string,
    server: LocalServer,
    redis: Redis,
    tools: { readonly look: string; readonly end: string },
  ) {
    this.name = name;
    this.#server = server;
    this.#redis = redis;
    this.#tools = tools;
  }

  /** `command`: the server's program. Default: the one on the PATH. */
  static async launch(command?: string): Promise<RealServer> {
    // A small hash lists its fields in the order in which they were written, as the memory's hashes
    // do; the order of a large one is different in every server process, and nothing may depend on
    // it. So here all are small.
    const args = ["--hash-max-ziplist-entries", "1000000", "--hash-max-ziplist-value", "1000000"];
    const server = await launchServer({ args, ...(command !== undefined && { command }) });
    const redis = new Redis(server.url);
    const load = async (lua: string): Promise<string> => String(await redis.script("LOAD", lua));
    const tools = { look: await load(LOOK), end: await load(END) };
    const info = await redis.info("server");
    const field = (name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, "m").exec(info)?.[1];
    const valkey = field("valkey_version");
    const name = valkey ? `Valkey ${valkey}` : `Redis ${field("redis_version")}`;
    const real = new RealServer(name, server, redis, tools);
    for (const { sha, lua } of scripts.values()) real.#shas.set(sha, await load(RECORDED + lua));
    return real;
  }

  async stop(): Promise<void> {
    this.#redis.disconnect();
    await this.#server.stop();
  }

  /** The text of the error that it replies. */
  async errorOf([name, ...words]: readonly [string, ...string[]]): Promise<string> {
    const error = await this.#redis.call(name, ...words).then(
      () => new Error("none"),
      (thrown: Error) => thrown,
    );
    return error.message;
  }

  /** The replies to these commands while a channel has so many receivers. */
  async withReceivers(
    channel: string,
    count: number,
    commands: readonly (readonly [string, ...string[]])[],
  ): Promise<unknown[]> {
    const receivers = Array.from({ length: count }, () => new Redis(this.#server.url));
    try {
      for (const receiver of receivers) await receiver.subscribe(channel);
      const replies: unknown[] = [];
      for (const [name, ...words] of commands) replies.push(await this.#redis.call(name, ...words));
      return replies;
    } finally {
      for (const receiver of receivers) receiver.disconnect();
    }
  }

  /** Runs each of them on the state that it found, in the order given. */
  async run(executions: readonly Execution[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (let at = 0; at < executions.length; at += AT_ONCE)
      outcomes.push(...(await this.#runSome(executions.slice(at, at + AT_ONCE))));
    return outcomes;
  }

  /** As so many ms after their end. */
  #restoreEnded(pipeline: Pipeline, keys: readonly (readonly [string, KeyState])[], ms: number): void {
    if (keys.length === 0) return;
    restore(pipeline, keys);
    pipeline.call("EVALSHA", this.#tools.end, keys.length, ...keys.map(([key]) => bytes(key)), ms);
  }

  async #runSome(executions: readonly Execution[]): Promise<Outcome[]> {
    const pipeline = this.#redis.pipeline();
    const places = executions.map((one) => {
      const begin = pipeline.length;
      const all = [...one.before];
      const some = (fits: (ttl: number) => boolean): typeof all => all.filter(([, { ttl }]) => fits(ttl));
      const [ended, ending, living] = [
        some((ttl) => ttl < 0),
        some((ttl) => ttl === 0),
        some((ttl) => ttl > 0),
      ];
      pipeline.call("FLUSHDB");
      restore(pipeline, living);
      this.#restoreEnded(pipeline, ended, 1.1);
      // A key lives until after the millisecond in which it ends. RACE: to restore the others, of
      // hundreds of fields, can take longer than that. So these come last.
      this.#restoreEnded(pipeline, ending, 0.05);
      const since = pipeline.length;
      pipeline.time();
      for (const [key, { ttl }] of living)
        if (ttl !== Number.POSITIVE_INFINITY) pipeline.call("PEXPIRE", bytes(key), ttl);
      const ran = pipeline.length;
      pipeline.callBuffer("EVALSHA", this.#shas.get(one.sha) ?? "", ...argumentsOf(one));
      pipeline.callBuffer("EVALSHA", this.#tools.look, 0);
      pipeline.time();
      return { begin, since, ran };
    });
    const replies = (await pipeline.exec()) ?? [];
    return executions.map(({ sha }, i) => {
      const { begin, since, ran } = places[i] as (typeof places)[number];
      const failure = [...replies.slice(begin, ran), replies[ran + 1]].find((reply) => reply?.[0])?.[0];
      if (failure)
        throw new Error(`the keys before ${scripts.get(sha)?.name} cannot be restored: ${failure}`);
      const [error, reply] = replies[ran] ?? [];
      const elapsed = millisOf(replies[ran + 2]) - millisOf(replies[since]);
      return { reply: error ?? read(reply), ...stateOf(read(replies[ran + 1]?.[1])), elapsed };
    });
  }
}

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

/** A reply, its texts as bytes. */
function read(reply: unknown): Answer {
  if (Buffer.isBuffer(reply)) return reply.toString("latin1");
  if (Array.isArray(reply)) return reply.map(read);
  if (reply === null || typeof reply === "number") return reply;
  throw new TypeError(`no reply of a script: ${String(reply)}`);
}

/** Whole ms, of a reply to TIME. */
function millisOf(reply: readonly [unknown, unknown] | undefined): number {
  const [seconds, micros] = (reply?.[1] as unknown[] | undefined) ?? [];
  return Number(seconds) * 1e3 + Math.floor(Number(micros) / 1e3);
}

/** Of a reply to LOOK. */
function stateOf(seen: Answer): Pick<Outcome, "after" | "messages"> {
  const after = new Map<string, KeyState>();
  let messages: readonly string[] = [];
  for (const [key, left, type, content] of seen as [string, number, KeyState["type"] | "list", string[]][]) {
    const ttl = left === -1 ? Number.POSITIVE_INFINITY : left;
    if (type === "list") messages = content;
    else after.set(key, { type, value: type === "zset" ? scored(content) : content, ttl });
  }
  return { after, messages };
}

/** Members, and scores as numbers, whatever digits a server writes. */
const scored = (content: readonly string[]): string[] =>
  content.map((text, i) => (i % 2 === 0 ? text : String(Number(text.replace("inf", "Infinity")))));

/** Without their ends, which come last because the time goes on. */
function restore(pipeline: Pipeline, keys: readonly (readonly [string, KeyState])[]): void {
  for (const [key, { type, value }] of keys) {
    const name = bytes(key);
    if (type === "string") pipeline.call("SET", name, bytes(value[0] ?? ""));
    else if (type === "hash") pipeline.call("HSET", name, ...value.map(bytes));
    else {
      const score = (i: number): string => (value[i + 1] ?? "").replace("Infinity", "inf");
      const pairs = value.flatMap((member, i) => (i % 2 === 0 ? [score(i), bytes(member)] : []));
      pipeline.call("ZADD", name, ...pairs);
    }
  }
}

function argumentsOf({ keys, argv, micros, receivers, info }: Execution): (string | number | Buffer)[] {
  const seconds = Math.floor(micros / 1e6);
  return [
    keys.length,
    ...keys.map(bytes),
    ...argv.map(bytes),
    ...[...receivers].flatMap(([channel, count]) => [bytes(channel), String(count)]),
    receivers.size,
    ...[...info].flat(),
    info.size,
    seconds,
    micros % 1e6,
  ];
}

import { Redis } from "ioredis";
import { type LocalServer, launchServer } from "../../../tools/redis/index.ts";
import { type Execution, type KeyState, type State, scripts } from "./execution.ts";

/** What a real server did with an execution. */
export interface Outcome {
  readonly reply: Answer;
  /** All keys that exist afterwards. */
  readonly after: State;
  readonly messages: readonly string[];
}

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

/** Waits until a key that ends in 1 ms has ended. */
const WAIT = `local function ms() local time = redis.call("TIME") return time[1] * 1000 + time[2] / 1000 end
local since = ms()
repeat until ms() - since >= 2.1`;

/** So many executions are on their way at a time. */
const AT_ONCE = 250;

/** A server of its own that runs recorded executions again. */
export class RealServer {
  /** Such as "Redis 7.0.15". */
  readonly name: string;
  readonly #server: LocalServer;
  readonly #redis: Redis;
  readonly #shas = new Map<string, string>();
  readonly #tools: { readonly look: string; readonly wait: string };

  private constructor(
    name: string,
    server: LocalServer,
    redis: Redis,
    tools: { readonly look: string; readonly wait: string },
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
    const tools = { look: await load(LOOK), wait: await load(WAIT) };
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

  /** Runs each of them on the state that it found, in the order given. */
  async run(executions: readonly Execution[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (let at = 0; at < executions.length; at += AT_ONCE)
      outcomes.push(...(await this.#runSome(executions.slice(at, at + AT_ONCE))));
    return outcomes;
  }

  async #runSome(executions: readonly Execution[]): Promise<Outcome[]> {
    const pipeline = this.#redis.pipeline();
    const places: number[] = [];
    for (const one of executions) {
      const restored = restoring(one.before);
      const hasEnded = [...one.before.values()].some(({ ttl }) => ttl < 0);
      pipeline.call("FLUSHDB");
      for (const [name, ...words] of restored) pipeline.call(name, ...words);
      if (hasEnded) pipeline.call("EVALSHA", this.#tools.wait, 0);
      pipeline.callBuffer("EVALSHA", this.#shas.get(one.sha) ?? "", ...argumentsOf(one));
      pipeline.callBuffer("EVALSHA", this.#tools.look, 0);
      places.push(pipeline.length - 2);
    }
    const replies = (await pipeline.exec()) ?? [];
    return executions.map((one, i) => {
      const at = places[i] ?? 0;
      const [[failed, reply] = [null, null], [error, seen] = [null, null]] = replies.slice(at, at + 2);
      const begin = (places[i - 1] ?? -2) + 2;
      const broken = replies.slice(begin, at).find(([error]) => error) ?? (error && [error]);
      if (broken) throw new Error(`the state before ${one.sha} cannot be restored: ${broken[0]?.message}`);
      const after = new Map<string, KeyState>();
      let messages: readonly string[] = [];
      for (const [key, ttl, type, value] of read(seen) as [string, number, string, string[]][]) {
        if (type === "list") messages = value;
        else
          after.set(key, { type: type as KeyState["type"], value: contentOf(type, value), ttl: ttlOf(ttl) });
      }
      return { reply: failed ?? read(reply), after, messages };
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

const ttlOf = (ttl: number): number => (ttl === -1 ? Number.POSITIVE_INFINITY : ttl);

/** Scores as numbers, whatever digits a server writes. */
const contentOf = (type: string, value: readonly string[]): readonly string[] =>
  type === "zset" ? value.map((text, i) => (i % 2 === 0 ? text : String(scoreOf(text)))) : value;

const scoreOf = (text: string): number => Number(text.replace("inf", "Infinity"));

/** The values first, then their ends: the time goes on. */
function restoring(state: State): [string, ...(string | Buffer)[]][] {
  const values: [string, ...(string | Buffer)[]][] = [];
  const ends: [string, ...(string | Buffer)[]][] = [];
  for (const [key, { type, value, ttl }] of state) {
    if (type === "string") values.push(["SET", bytes(key), bytes(value[0] ?? "")]);
    else if (type === "hash") values.push(["HSET", bytes(key), ...value.map(bytes)]);
    else {
      const pairs = value.flatMap((member, i) => (i % 2 === 0 ? [value[i + 1] ?? "", bytes(member)] : []));
      values.push([
        "ZADD",
        bytes(key),
        ...pairs.map((one) => (one === "Infinity" ? "inf" : one === "-Infinity" ? "-inf" : one)),
      ]);
    }
    if (ttl !== Number.POSITIVE_INFINITY) ends.push(["PEXPIRE", bytes(key), String(Math.max(ttl, 1))]);
  }
  return [...values, ...ends];
}

function argumentsOf({ keys, argv, micros, receivers, info }: Execution): (string | number | Buffer)[] {
  const seconds = Math.floor(micros / 1e6);
  return [
    keys.length,
    ...keys.map(bytes),
    ...argv.map(bytes),
    ...[...receivers].flatMap(([channel, count]) => [bytes(channel), String(count)]),
    receivers.size,
    ...[...info].flatMap(([section, text]) => [section, text]),
    info.size,
    seconds,
    micros % 1e6,
  ];
}

import { createHash } from "node:crypto";
import { Keyspace, RedisError, type Reply, Status } from "./keyspace.ts";
import { LuaError, type LuaFunction, LuaTable, type LuaValue, text } from "./lua-runtime.ts";
import { commands, fits, integer } from "./redis-commands.ts";
import { runScript, scriptOf } from "./scripts.generated.ts";

/**
 * A Redis in memory that runs the compiled scripts of lua/: what they use of its commands, expiry and
 * messages. A command, an option or a script that it lacks is an error of the program that uses it, and
 * no reply.
 */
export class MemoryRedis extends Keyspace {
  /** The scripts that it has been sent as text, by SHA. */
  readonly known = new Set<string>();
  readonly #api = this.#apiOf();

  /** @throws RedisError that Redis replies */
  call([given = "", ...words]: readonly string[]): Reply {
    const name = given.toUpperCase();
    const run = commands[name];
    if (!run && !name.startsWith("EVAL")) throw new Error(`the memory Redis has no command ${given}`);
    if (!fits(name, words))
      throw new RedisError(`ERR wrong number of arguments for '${given.toLowerCase()}' command`);
    return run ? run(this, words) : this.#evalWords(name, words);
  }

  /** With its words as a client writes them. */
  #evalWords(name: string, [script = "", count, ...words]: readonly string[]): Reply {
    const keys = integer(count);
    if (keys > words.length) throw new RedisError("ERR Number of keys can't be greater than number of args");
    if (keys < 0) throw new RedisError("ERR Number of keys can't be negative");
    const run = name === "EVAL" ? this.eval : this.evalsha;
    return run.call(this, script, words.slice(0, keys), words.slice(keys));
  }

  /** @throws RedisError NOSCRIPT, or what the script replies */
  evalsha(sha: string, keys: readonly string[], argv: readonly string[]): Reply {
    if (!this.known.has(sha)) throw new RedisError("NOSCRIPT No matching script. Please use EVAL.");
    return this.run(sha, keys, argv);
  }

  /** @throws RedisError that the script replies */
  eval(lua: string, keys: readonly string[], argv: readonly string[]): Reply {
    const sha = createHash("sha1").update(lua).digest("hex");
    this.known.add(sha);
    return this.run(sha, keys, argv);
  }

  /** The script of this SHA, whether it was sent before or not. */
  run(sha: string, keys: readonly string[], argv: readonly string[]): Reply {
    const script = scriptOf(sha);
    if (!script) throw new Error(`no script of lua/ has the SHA ${sha}`);
    return this.atOnce(() => {
      try {
        return replyOf(runScript(script, this.#api, LuaTable.of(keys), LuaTable.of(argv)));
      } catch (error) {
        // Redis also names the line, which compiled scripts do not know.
        if (error instanceof LuaError) throw new RedisError(`ERR user_script: ${error.message}`);
        throw error;
      }
    });
  }

  /** `redis` in a script. */
  #apiOf(): Readonly<Record<string, LuaFunction | number>> {
    const call = (...values: LuaValue[]): LuaValue => {
      const [name = "", ...words] = values.map(wordOf);
      if (!fits(name, words))
        throw new RedisError("ERR Wrong number of args calling Redis command from script");
      return luaOf(this.call([name, ...words]));
    };
    return {
      call,
      pcall: (...words: LuaValue[]) => {
        try {
          return call(...words);
        } catch (error) {
          if (error instanceof RedisError) return LuaTable.with([["err", error.message]]);
          throw error;
        }
      },
      error_reply: (message: string) => LuaTable.with([["err", message]]),
      // Redis 6.2 has none.
      ...(!this.version.startsWith("6.") && {
        acl_check_cmd: (...words: LuaValue[]) => words.map(wordOf).length > 0,
      }),
      log: () => {},
      LOG_WARNING: 3,
    };
  }
}

/** Redis writes a whole number without an exponent. */
const wordOf = (value: LuaValue): string => {
  if (typeof value === "string") return value;
  if (typeof value !== "number")
    throw new RedisError("ERR Lua redis lib command arguments must be strings or integers");
  return Number.isInteger(value) && Math.abs(value) < 2 ** 63 ? BigInt(value).toString() : String(value);
};

function luaOf(reply: Reply): LuaValue {
  if (reply === null) return false;
  if (reply instanceof Status) return LuaTable.with([["ok", reply.ok]]);
  return typeof reply === "object" ? LuaTable.of(reply.map(luaOf)) : reply;
}

function replyOf(value: LuaValue): Reply {
  if (value === undefined || value === false) return null;
  if (value === true) return 1;
  if (typeof value === "number") return Math.abs(value) < 2 ** 63 ? Math.trunc(value) : -(2 ** 63);
  if (typeof value === "string") return value;
  if (!(value instanceof LuaTable)) throw new Error("a script returned a function");
  const error = value.get("err");
  if (error !== undefined) throw new RedisError(text(error));
  const ok = value.get("ok");
  return ok === undefined ? value.list.map(replyOf) : new Status(text(ok));
}

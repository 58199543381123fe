import { Glob } from "../../inside.ts";
import { type Kept, type Keyspace, RedisError, type Reply, Status } from "./keyspace.ts";
import { SortedSet } from "./sorted-set.ts";
import { Stream, type StreamId } from "./stream.ts";

/** A command, without its name. */
type Command = (db: Keyspace, words: string[]) => Reply;

const OK = new Status("OK");
const syntaxError = (): never => {
  throw new RedisError("ERR syntax error");
};
/** An option that Redis has and this one lacks. */
const lacking = (command: string, option: string | undefined): never => {
  throw new Error(`the memory Redis has no ${option} of ${command}`);
};

// ---- words

/** Of 64 bits. */
function long(word = ""): bigint {
  const n = /^(0|-?[1-9]\d*)$/.test(word) ? BigInt(word) : 2n ** 63n;
  if (BigInt.asIntN(64, n) !== n) throw new RedisError("ERR value is not an integer or out of range");
  return n;
}
export const integer = (word?: string): number => Number(long(word));

/** The longest time, in ms: with the time of any clock it is still a number that counts exactly. */
const LONGEST = 2 ** 52;

/** When something ends that lasts this many ms. */
function endAfter(db: Keyspace, word: string | undefined, command: string): number {
  const ms = integer(word);
  if (Math.abs(ms) > LONGEST) lacking(command, "times beyond 2^52");
  return db.ms + ms;
}

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** `error`: if it is none. */
function float(word: string, error: string): number {
  const infinite = /^([+-]?)inf(?:inity)?$/i.exec(word);
  if (infinite) return Number(`${infinite[1]}Infinity`);
  if (/^[+-]?0x/i.test(word)) lacking("numbers", "hexadecimal form");
  if (!DECIMAL.test(word)) throw new RedisError(error);
  return Number(word);
}

const shown = (score: number): string => {
  if (!Number.isFinite(score)) return score > 0 ? "inf" : "-inf";
  return Number.isInteger(score) && Math.abs(score) < 1e17 ? BigInt(score).toString() : String(score);
};

/** The items from one place to another one, both included; from the end if negative. */
function slice<T>(list: readonly T[], from: number, to: number): T[] {
  const first = from < 0 ? Math.max(list.length + from, 0) : from;
  const last = to < 0 ? list.length + to : to;
  return first > last ? [] : list.slice(first, last + 1);
}

/** A limit such as "5", "(5" (without it) and "-inf". As strtod() reads it: nothing is 0. */
function limit(word = ""): { readonly at: number; readonly isOpen: boolean } {
  const isOpen = word.startsWith("(");
  const text = (isOpen ? word.slice(1) : word) || "0";
  return { at: float(text.trimStart(), "ERR min or max is not a float"), isOpen };
}

/** Without a number it has this one. Ids beyond 10^15 are lacking. */
function streamId(word: string, number: number): StreamId {
  const [, ms, given] = /^(\d+)(?:-(\d+))?$/.exec(word) ?? [];
  if (ms === undefined) throw new RedisError("ERR Invalid stream ID specified as stream command argument");
  if (ms.length > 15 || (given?.length ?? 0) > 15) lacking("streams", "ids beyond 10^15");
  return [Number(ms), given === undefined ? number : Number(given)];
}

/** The start or the end of a range of a stream: "-", "+", an id, "(" and an id. */
function streamLimit(word: string, isStart: boolean): StreamId {
  if (word === "-") return [0, 0];
  if (word === "+") return [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const isOpen = word.startsWith("(");
  const [ms, number] = streamId(isOpen ? word.slice(1) : word, isStart ? 0 : Number.POSITIVE_INFINITY);
  return [ms, isOpen ? number + (isStart ? 1 : -1) : number];
}

const idText = ([ms, number]: StreamId): string => `${ms}-${number}`;

// ---- keys

type Valued<Type extends Kept["type"]> = Extract<Kept, { readonly type: Type }>["value"];

function find<Type extends Kept["type"]>(db: Keyspace, key = "", type: Type): Valued<Type> | undefined {
  const kept = db.find(key);
  if (kept && kept.type !== type)
    throw new RedisError("WRONGTYPE Operation against a key holding the wrong kind of value");
  return kept?.value as Valued<Type> | undefined;
}

function ensure<Type extends "hash" | "zset" | "stream">(
  db: Keyspace,
  key: string,
  type: Type,
): Valued<Type> {
  const known = find(db, key, type);
  if (known) return known;
  const value =
    type === "hash" ? new Map<string, string>() : type === "zset" ? new SortedSet() : new Stream();
  db.keys.set(key, { type, value, until: Number.POSITIVE_INFINITY } as Kept);
  return value as Valued<Type>;
}

/** Keeps the end of a key that has one. */
function write(db: Keyspace, key: string, value: string): void {
  const until = db.find(key)?.until ?? Number.POSITIVE_INFINITY;
  db.keys.set(key, { type: "string", value, until });
}

/** A key without content does not exist. */
function tidy(db: Keyspace, key: string): void {
  const kept = db.find(key);
  if ((kept?.type === "hash" || kept?.type === "zset") && kept.value.size === 0) db.keys.delete(key);
}

/** Removes members, and returns how many there were. */
function removed(db: Keyspace, key: string, members: readonly string[]): number {
  const set = find(db, key, "zset");
  const count = members.filter((member) => set?.remove(member)).length;
  tidy(db, key);
  return count;
}

const scoreOf = (set: SortedSet | undefined, member: string): string | null => {
  const score = set?.score(member);
  return score === undefined ? null : shown(score);
};

const withScores = (set: SortedSet, members: readonly string[]): string[] =>
  members.flatMap((member) => [member, shown(set.score(member) as number)]);

/** What scripts and clients of this package send. */
export const commands: Readonly<Record<string, Command>> = {
  TIME: ({ micros }) => [String(Math.floor(micros / 1e6)), String(micros % 1e6)],

  // ---- keys

  DEL: (db, keys) => keys.filter((key) => db.find(key) && db.keys.delete(key)).length,
  EXISTS: (db, keys) => keys.filter((key) => db.find(key)).length,
  PTTL(db, [key = ""]) {
    const kept = db.find(key);
    if (!kept) return -2;
    return kept.until === Number.POSITIVE_INFINITY ? -1 : kept.until - db.ms;
  },
  PEXPIRE(db, [key = "", ms, option]) {
    if (option !== undefined) lacking("PEXPIRE", option);
    const until = endAfter(db, ms, "PEXPIRE");
    const kept = db.find(key);
    if (!kept) return 0;
    if (until <= db.ms) db.keys.delete(key);
    else kept.until = until;
    return 1;
  },
  PERSIST(db, [key = ""]) {
    const kept = db.find(key);
    if (!kept || kept.until === Number.POSITIVE_INFINITY) return 0;
    kept.until = Number.POSITIVE_INFINITY;
    return 1;
  },
  /** All keys in one step, whatever the cursor and COUNT are. */
  SCAN(db, [, ...options]) {
    let keys = [...db.keys.keys()].filter((key) => db.find(key));
    for (let i = 0; i < options.length; i += 2) {
      const [option = "", value = ""] = [options[i]?.toUpperCase(), options[i + 1]];
      const glob = new Glob(value);
      if (option === "MATCH") keys = keys.filter((key) => glob.matches(key));
      else if (option === "TYPE") keys = keys.filter((key) => db.find(key)?.type === value);
      else if (option !== "COUNT") lacking("SCAN", option);
    }
    return ["0", keys];
  },

  // ---- strings

  GET: (db, [key]) => find(db, key, "string") ?? null,
  SET(db, [key = "", value = "", ...options]) {
    let until = Number.POSITIVE_INFINITY;
    const known = db.find(key);
    const given = new Set<string>();
    for (let option = options.shift(); option !== undefined; option = options.shift()) {
      const word = option.toUpperCase();
      if (/^(EX|EXAT|PXAT|GET|IF..)$/.test(word)) lacking("SET", word);
      if (!/^(NX|XX|KEEPTTL|PX)$/.test(word) || (word === "PX" && options.length === 0)) syntaxError();
      if (word === "KEEPTTL") until = known?.until ?? until;
      if (word === "PX") until = endAfter(db, options.shift(), "SET");
      given.add(word);
    }
    if ((given.has("NX") && given.has("XX")) || (given.has("PX") && given.has("KEEPTTL"))) syntaxError();
    if (given.has("PX") && until <= db.ms) throw new RedisError("ERR invalid expire time in 'set' command");
    if (known ? given.has("NX") : given.has("XX")) return null;
    db.keys.set(key, { type: "string", value, until });
    return OK;
  },
  GETSET(db, [key = "", value = ""]) {
    const before = find(db, key, "string") ?? null;
    db.keys.set(key, { type: "string", value, until: Number.POSITIVE_INFINITY });
    return before;
  },
  SETRANGE(db, [key = "", place, value = ""]) {
    const at = integer(place);
    if (at < 0) throw new RedisError("ERR offset is out of range");
    const before = find(db, key, "string") ?? "";
    if (value === "") return before.length;
    const after = before.padEnd(at, "\0").slice(0, at) + value + before.slice(at + value.length);
    write(db, key, after);
    return after.length;
  },
  INCR(db, [key = ""]) {
    const next = long(find(db, key, "string") ?? "0") + 1n;
    if (BigInt.asIntN(64, next) !== next) throw new RedisError("ERR increment or decrement would overflow");
    write(db, key, String(next));
    return Number(next);
  },

  // ---- hashes

  HGET: (db, [key, field = ""]) => find(db, key, "hash")?.get(field) ?? null,
  HMGET(db, [key, ...fields]) {
    const hash = find(db, key, "hash");
    return fields.map((field) => hash?.get(field) ?? null);
  },
  HSET(db, [key = "", ...pairs]) {
    if (pairs.length === 0 || pairs.length % 2 > 0)
      throw new RedisError("ERR wrong number of arguments for 'hset' command");
    const hash = ensure(db, key, "hash");
    const before = hash.size;
    for (let i = 0; i < pairs.length; i += 2) hash.set(pairs[i] as string, pairs[i + 1] as string);
    return hash.size - before;
  },
  HDEL(db, [key = "", ...fields]) {
    const hash = find(db, key, "hash");
    const count = fields.filter((field) => hash?.delete(field)).length;
    tidy(db, key);
    return count;
  },
  HEXISTS: (db, [key, field = ""]) => (find(db, key, "hash")?.has(field) ? 1 : 0),
  HGETALL: (db, [key]) => [...(find(db, key, "hash") ?? [])].flat(),
  HKEYS: (db, [key]) => [...(find(db, key, "hash")?.keys() ?? [])],
  HLEN: (db, [key]) => find(db, key, "hash")?.size ?? 0,

  // ---- sorted sets

  ZADD(db, [key = "", ...rest]) {
    const option = rest[0]?.toUpperCase();
    const isNew = option === "NX";
    if (isNew) rest.shift();
    else if (/^(XX|GT|LT|CH|INCR)$/.test(option ?? "")) lacking("ZADD", option);
    if (rest.length === 0 || rest.length % 2 > 0) syntaxError();
    const scores = rest
      .filter((_, i) => i % 2 === 0)
      .map((word) => float(word, "ERR value is not a valid float"));
    const set = ensure(db, key, "zset");
    const before = set.size;
    for (const [i, score] of scores.entries()) {
      const member = rest[2 * i + 1] as string;
      if (!isNew || set.score(member) === undefined) set.set(member, score);
    }
    return set.size - before;
  },
  ZREM: (db, [key = "", ...members]) => removed(db, key, members),
  ZSCORE: (db, [key, member = ""]) => scoreOf(find(db, key, "zset"), member),
  ZMSCORE(db, [key, ...members]) {
    const set = find(db, key, "zset");
    return members.map((member) => scoreOf(set, member));
  },
  ZCARD: (db, [key]) => find(db, key, "zset")?.size ?? 0,
  ZRANK(db, [key, member = ""]) {
    const rank = find(db, key, "zset")?.rank(member) ?? -1;
    return rank < 0 ? null : rank;
  },
  ZREVRANK(db, [key, member = ""]) {
    const set = find(db, key, "zset");
    const rank = set?.rank(member) ?? -1;
    return set === undefined || rank < 0 ? null : set.size - 1 - rank;
  },
  ZRANGE(db, [key, from = "", to = "", ...options]) {
    const [option, ...more] = options.map((word) => word.toUpperCase());
    if (option === "BYLEX") return byText(find(db, key, "zset") ?? new SortedSet(), from, to, more);
    if (option !== undefined && option !== "WITHSCORES") lacking("ZRANGE", option);
    if (more.length > 0) lacking("ZRANGE", more[0]);
    const [first, last] = [integer(from), integer(to)];
    const set = find(db, key, "zset");
    const members = slice(set?.members ?? [], first, last);
    return set && option ? withScores(set, members) : members;
  },
  ZPOPMIN(db, [key = "", count = "1"]) {
    const most = integer(count);
    if (most < 0) throw new RedisError("ERR value is out of range, must be positive");
    const set = find(db, key, "zset");
    if (!set) return [];
    const popped = withScores(set, set.members.slice(0, most));
    removed(
      db,
      key,
      popped.filter((_, i) => i % 2 === 0),
    );
    return popped;
  },
  ZREMRANGEBYRANK(db, [key = "", from, to]) {
    const [first, last] = [integer(from), integer(to)];
    return removed(db, key, slice(find(db, key, "zset")?.members ?? [], first, last));
  },
  ZREMRANGEBYSCORE(db, [key = "", from, to]) {
    const [low, high] = [limit(from), limit(to)];
    const set = find(db, key, "zset");
    const members = set?.members.filter((member) => {
      const score = set.score(member) as number;
      const isLow = score < low.at || (low.isOpen && score === low.at);
      return !isLow && score <= high.at && !(high.isOpen && score === high.at);
    });
    return removed(db, key, members ?? []);
  },

  // ---- streams

  /** `MAXLEN ~ n` keeps n at most, where Redis may keep some more. */
  XADD(db, [key = "", ...rest]) {
    let most = Number.POSITIVE_INFINITY;
    const option = rest[0]?.toUpperCase() ?? "";
    if (/^(NOMKSTREAM|MINID|LIMIT)$/.test(option)) lacking("XADD", option);
    if (option === "MAXLEN") {
      rest.shift();
      if (rest[0] === "~" || rest[0] === "=") rest.shift();
      most = integer(rest.shift());
      if (most < 0) throw new RedisError("ERR The MAXLEN argument must be >= 0.");
      if (rest[0]?.toUpperCase() === "LIMIT") lacking("XADD", "LIMIT");
    }
    const [id = "", ...words] = rest;
    if (id.endsWith("-*")) lacking("XADD", "ids with a number of its own");
    const given = id === "*" ? null : streamId(id, 0);
    if (words.length === 0 || words.length % 2 > 0)
      throw new RedisError("ERR wrong number of arguments for 'xadd' command");
    if (given && given[0] + given[1] === 0)
      throw new RedisError("ERR The ID specified in XADD must be greater than 0-0");
    const stream = ensure(db, key, "stream");
    const made = given ?? stream.nextId(db.ms);
    if (!stream.add(made, words))
      throw new RedisError(
        "ERR The ID specified in XADD is equal or smaller than the target stream top item",
      );
    stream.trim(most);
    return idText(made);
  },
  XRANGE(db, [key = "", from = "", to = "", ...options]) {
    const [start, end] = [streamLimit(from, true), streamLimit(to, false)];
    const [option, count, ...more] = options;
    if (option !== undefined && (option.toUpperCase() !== "COUNT" || more.length > 0)) syntaxError();
    const most = option === undefined ? Number.POSITIVE_INFINITY : integer(count);
    const stream = find(db, key, "stream");
    if (!stream) return [];
    if (most <= 0) return null;
    return stream.range(start, end, most).map(({ id, words }) => [idText(id), words]);
  },

  // ---- messages and the server

  PUBLISH: (db, [channel = "", message = ""]) => db.publish(channel, message),
  PUBSUB(db, [what, ...channels]) {
    if (what?.toUpperCase() !== "NUMSUB") lacking("PUBSUB", what);
    return channels.flatMap((channel) => [channel, db.receivers(channel)]);
  },
  INFO: ({ version, runId, uptime }) =>
    `redis_version:${version}\r\nrun_id:${runId}\r\nuptime_in_seconds:${uptime}\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n`,
};

/** How many words each takes after its name; negative: that many or more. */
const ARITY: Readonly<Record<string, number>> = {
  ...{ TIME: 0, DEL: -1, EXISTS: -1, PTTL: 1, PEXPIRE: -2, PERSIST: 1, SCAN: -1 },
  ...{ GET: 1, SET: -2, GETSET: 2, SETRANGE: 3, INCR: 1 },
  ...{ HGET: 2, HMGET: -2, HSET: -3, HDEL: -2, HEXISTS: 2, HGETALL: 1, HKEYS: 1, HLEN: 1 },
  ...{ ZADD: -3, ZREM: -2, ZSCORE: 2, ZMSCORE: -2, ZCARD: 1, ZRANK: -2, ZREVRANK: -2, ZRANGE: -3 },
  ...{ ZPOPMIN: -1, ZREMRANGEBYRANK: 3, ZREMRANGEBYSCORE: 3, PUBLISH: 2, PUBSUB: -1 },
  ...{ XADD: -4, XRANGE: -3, EVAL: -2, EVALSHA: -2 },
};

/** Is the number of words one that the command takes? */
export function fits(name: string, words: readonly unknown[]): boolean {
  const count = ARITY[name] ?? 0;
  return count < 0 || name === "INFO" ? words.length >= -count : words.length === count;
}

/** Between texts such as "[a" (with it) and "(b" (without it), of members with one score. */
function byText(set: SortedSet, from: string, to: string, options: readonly string[]): string[] {
  const { members } = set;
  if (set.score(members[0] ?? "") !== set.score(members.at(-1) ?? ""))
    lacking("ZRANGE BYLEX", "members with several scores");
  const [word, offset, count] = options;
  if (word !== undefined && word !== "LIMIT") lacking("ZRANGE BYLEX", word);
  if (!/^[[(]/.test(from) || !/^[[(]/.test(to)) lacking("ZRANGE BYLEX", `${from} ${to}`);
  const [low, high] = [from.slice(1), to.slice(1)];
  const within = members.filter((member) => {
    const isLow = from.startsWith("[") ? member >= low : member > low;
    return isLow && (to.startsWith("[") ? member <= high : member < high);
  });
  if (word === undefined) return within;
  const first = integer(offset);
  return within.slice(first, first + integer(count));
}

import type { RedisArgument } from "../api/redis.ts";
import { type Script, type ScriptKeys, sharded } from "./script.ts";

// What is sent to run a script: which one, with which keys and arguments. A driver takes it as one
// text in Redis's protocol, or as words: as its library wants it.

/** What is to run it. */
interface Where {
  readonly isCluster: boolean;
}

/** A command that runs a script. */
export class Statement {
  readonly script: Script;
  readonly keys: ScriptKeys;
  /** Can it be one text? Not with bytes, and not if the library is to read the reply. */
  readonly isText: boolean;
  protected readonly args: readonly RedisArgument[];

  constructor(at: Where, script: Script, keys: ScriptKeys, args: readonly RedisArgument[]) {
    this.script = at.isCluster && !script.isForeign ? sharded(script) : script;
    this.keys = keys;
    this.args = args;
    this.isText = !script.isForeign && !args.some(Buffer.isBuffer);
  }

  /** What comes after the keys. `hold`, `number`: of a prepared statement. */
  argv(_hold: string, _number: number): readonly RedisArgument[] {
    return this.args;
  }

  /** The command in Redis's protocol, with the hash of the script. */
  text(_hold: string, _number: number): string {
    return this.#withScript("evalsha", this.script.sha, this.args);
  }

  /** The same with the text of the script. */
  evalText(hold: string, number: number): string {
    return this.#withScript("eval", this.script.lua, this.argv(hold, number));
  }

  #withScript(name: string, script: string, args: readonly RedisArgument[]): string {
    const { full, text } = this.keys;
    let all = `*${3 + full.length + args.length}\r\n${bulk(name)}${bulk(script)}${text}`;
    for (const arg of args) all += bulk(String(arg));
    return all;
  }
}

const bulk = (word: string): string => `$${Buffer.byteLength(word)}\r\n${word}\r\n`;

/**
 * A statement of a lock that is sent again and again with another hold, its first argument, and
 * another number of 16 digits (`isLong`). They have the same lengths each time. So it joins five
 * pieces, where others measure and join all their words.
 */
export class PreparedStatement extends Statement {
  /** How many characters its holds have: it fits no others. */
  readonly holdLength: number;
  readonly #numberAt: number;
  readonly #before: string;
  readonly #between: string;
  readonly #after: string;

  /** `args`: with the first hold and number. */
  constructor(
    at: Where,
    script: Script,
    keys: ScriptKeys,
    args: readonly (string | number)[],
    numberAt: number,
  ) {
    super(at, script, keys, args);
    const [hold, number] = [String(args[0]), String(args[numberAt])];
    const text = super.text("", 0);
    const first = text.indexOf(hold);
    const second = text.indexOf(number, first + hold.length);
    this.holdLength = hold.length;
    this.#numberAt = numberAt;
    this.#before = text.slice(0, first);
    this.#between = text.slice(first + hold.length, second);
    this.#after = text.slice(second + number.length);
  }

  override argv(hold: string, number: number): readonly RedisArgument[] {
    return this.args.with(0, hold).with(this.#numberAt, micros(number));
  }

  override text(hold: string, number: number): string {
    return `${this.#before}${hold}${this.#between}${micros(number)}${this.#after}`;
  }
}

/** The least number of 16 digits. */
const LONG = 1e15;

/** Does it have 16 digits, as a time in µs and a token do? */
export const isLong = (number: number): boolean => number >= LONG && number <= Number.MAX_SAFE_INTEGER;

/** Half of the digits of such a number. */
const HALF = 1e8;
const ZEROS = "00000000";

/**
 * A time in µs, or a token, in digits. V8 makes the text of a number of up to 9 digits three times
 * faster than that of a longer one.
 */
export function micros(time: number): string {
  if (!(time >= LONG)) return `${time}`;
  const high = Math.floor(time / HALF);
  const low = `${time - high * HALF}`;
  return `${high}${ZEROS.slice(low.length)}${low}`;
}

/** A reply that no script of this package sends. */
export const unexpected = (answer: unknown): TypeError =>
  new TypeError(
    `Redis gave an unexpected answer, ${JSON.stringify(Buffer.isBuffer(answer) ? answer.toString() : answer)}`,
  );

/**
 * The least number of 16 digits. Scripts whose tokens are made of the server's time begin there, on
 * a server whose clock is in 1970 too. It tells the short answer of an acquire, which is the time
 * alone, from other numbers.
 */
export const FIRST_TOKEN = 1e15;

const LENGTH = String(FIRST_TOKEN).length;

/**
 * A reply that is a text of 16 digits: the server's time in µs, which is a token, too.
 *
 * @throws TypeError for every other reply
 */
export function tokenTime(reply: unknown): number {
  let time = 0;
  // A wrapped connection may read texts.
  const text = typeof reply === "string" ? Buffer.from(reply) : reply;
  if (Buffer.isBuffer(text) && text.length === LENGTH)
    for (let i = 0; i < LENGTH; i++) {
      const digit = (text[i] ?? 0) - ZERO;
      time = digit >= 0 && digit <= 9 ? time * 10 + digit : Number.NaN;
    }
  if (time >= FIRST_TOKEN && time <= Number.MAX_SAFE_INTEGER) return time;
  throw unexpected(reply);
}

/** The items of a reply that is a list. */
export function listOf(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply);
}

/** A field of INFO's text; null: the text has none of that name. */
export const infoField = (info: string, name: string): string | null =>
  new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? null;

/**
 * The share of `maxmemory` in use, by INFO's text, as Redis compares them: without the buffers of
 * replicas and of the append-only file. Null: there is no limit, or the text does not say.
 */
export function memoryUse(info: string): number | null {
  const limit = Number(infoField(info, "maxmemory"));
  const used = infoField(info, "used_memory");
  if (used === null || !(limit > 0)) return null;
  return (Number(used) - Number(infoField(info, "mem_not_counted_for_evict"))) / limit;
}

/**
 * Reads the fields of a reply in order, so that a decoder only names the next field. A reply that
 * is no list counts as one field. A missing field, or one of another type, throws the error of an
 * unexpected answer.
 */
export class Fields {
  readonly #reply: unknown;
  readonly #fields: readonly unknown[];
  #at = 0;

  constructor(reply: unknown) {
    this.#reply = reply;
    this.#fields = Array.isArray(reply) ? reply : [reply];
  }

  /**
   * Reads a whole reply. RACE: a connection that has lost a reply, by CLIENT REPLY or a fault of
   * the library, answers each command with the reply to the next one. So a decoder checks the shape
   * and the range of every field, and refuses a reply that has more of them.
   */
  static whole<T, Given extends unknown[]>(
    reply: unknown,
    read: (from: Fields, ...given: Given) => T,
    ...given: Given
  ): T {
    const from = new Fields(reply);
    const answer = read(from, ...given);
    if (from.#at < from.#fields.length) throw from.unexpected();
    return answer;
  }

  get isOver(): boolean {
    return this.#at >= this.#fields.length;
  }

  /** The raw value; undefined: no field is left. */
  next(): unknown {
    return this.#fields[this.#at++];
  }

  /**
   * A whole number from -2, the least that PTTL answers. Scripts write large ones as text.
   * `missing`: the result if no field is left.
   */
  number(missing?: number): number {
    const field = this.#fields[this.#at++] ?? missing;
    const number = typeof field === "string" && field !== "" ? Number(field) : field;
    if (!Number.isSafeInteger(number) || (number as number) < -2) throw this.unexpected();
    return number as number;
  }

  /**
   * A fencing token made of the server's time: always of 16 digits. That tells such an answer from
   * lists of small numbers.
   */
  token(): number {
    const token = this.number();
    if (token < FIRST_TOKEN) throw this.unexpected();
    return token;
  }

  text(): string {
    const field = this.#fields[this.#at++];
    if (typeof field !== "string") throw this.unexpected();
    return field;
  }

  /** 1: true. 0, or no field is left: false. */
  flag(): boolean {
    const flag = this.#fields[this.#at++] ?? 0;
    if (flag !== 0 && flag !== 1) throw this.unexpected();
    return flag === 1;
  }

  /** ms. PTTL's -1 means that the key has no TTL. */
  ttl(): number {
    const ms = this.number();
    return ms === -1 ? Number.POSITIVE_INFINITY : ms;
  }

  /** A code or a word, and what it means. */
  one<T>(meanings: ReadonlyMap<unknown, T>): T {
    const meaning = meanings.get(this.next());
    if (meaning === undefined) throw this.unexpected();
    return meaning;
  }

  /** A field that is a list itself. */
  list(): Fields {
    const list = this.next();
    if (!Array.isArray(list)) throw this.unexpected();
    return new Fields(list);
  }

  /** Calls `read` for the remaining fields until none is left. */
  each<T>(read: (fields: this) => T): T[] {
    const all: T[] = [];
    while (!this.isOver) all.push(read(this));
    return all;
  }

  unexpected(): TypeError {
    return unexpected(this.#reply);
  }
}

/**
 * Reads the words of a message in order, as `Fields` reads a reply. Anyone may send messages, so it
 * throws nothing: after a missing or malformed word `isWhole` is false, and the values read mean
 * nothing. `rest` reads the last word, which may contain spaces.
 */
export class Words {
  isWhole = true;
  readonly #text: string;
  #at: number;

  /** `at`: where the first word begins. */
  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  word(): string {
    const at = this.#at;
    const end = this.#text.indexOf(" ", at);
    this.#at = end + 1;
    if (end > at) return this.#text.slice(at, end);
    this.isWhole = false;
    return "";
  }

  /** A whole number from 1 to 2^53-1, in digits: scripts write no other numbers. */
  count(): number {
    const text = this.#text;
    let number = 0;
    for (let at = this.#at; ; at++) {
      const digit = text.charCodeAt(at) - ZERO;
      // charCodeAt gives NaN past the end of the text.
      if (!(digit >= 0 && digit <= 9)) {
        if (digit !== SPACE - ZERO || !(number > 0 && number <= Number.MAX_SAFE_INTEGER))
          this.isWhole = false;
        this.#at = at + 1;
        return number;
      }
      number = number * 10 + digit;
    }
  }

  flag(): boolean {
    const word = this.word();
    if (word !== "0" && word !== "1") this.isWhole = false;
    return word === "1";
  }

  rest(): string {
    if (this.#at >= this.#text.length) this.isWhole = false;
    return this.#text.slice(this.#at);
  }
}

const ZERO = 48;
const SPACE = 32;

export const { whole } = Fields;

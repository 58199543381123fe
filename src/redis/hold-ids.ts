import { startupSnapshot } from "node:v8";
import { clocks } from "../util/clock.ts";
import { codeAt } from "../util/code-at.ts";
import { newSecrets, SECRET_LENGTH } from "../util/random.ts";

/** A hold's id in its parts. */
export interface HoldId {
  /** The name of the holder's host: in Kubernetes the pod's name. There every `pid` is 1. */
  readonly host: string;
  readonly pid: number;
  /** The `id` of the holder's lock client. */
  readonly client: string;
  /** The hold's number among those of its client. */
  readonly number: number;
}

/**
 * Characters of the number, in base 36, and of the random part: a fixed width, so that scripts and
 * people can cut an id by position.
 */
const NUMBER = 8;
const SECRET = SECRET_LENGTH;
const WIDTH = NUMBER + SECRET;

const DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz";
const ZERO = 48;
const A = 97;

/**
 * How many holds share one remembered time, the fewest blocks of holds that are remembered, and the
 * most (3.3 MiB).
 */
const BLOCK = 256;
const FEWEST = 4;
const MOST = 1_024;

/**
 * The ids of a client's holds: `<channel>:<number><random>`, or `<client id>:…` for locks that are
 * not granted by message. The number counts the holds. The random part, of at least 64 bits, makes
 * an id a secret between this client and Redis: a message that names a hold was written by a client
 * that may read the keys, or that received an earlier message about it.
 *
 * The random parts are drawn for a block of holds at once, because one draw costs 2 µs, for one hold
 * or for 256. A block is one text.
 *
 * RACE: two processes that are started from one heap snapshot continue with the same client id and
 * the same number. What was drawn ahead would be in that snapshot too, and one copy would take the
 * other copy's hold for its own (R1). So a client created while a snapshot is built always draws
 * per hold, when the hold is made.
 *
 * The random parts of the latest holds are kept in a ring of blocks, because a grant may arrive long
 * after its hold was given up. A block is forgotten when its place is drawn anew: the ring doubles if
 * holds of that block are younger than `keep` ms.
 */
export class HoldIds {
  readonly #keep: number;
  readonly #drawsAhead = !startupSnapshot.isBuildingSnapshot();
  #blocks: string[] = Array.from({ length: FEWEST }, () => "");
  /** When the first hold of each block was made. */
  #times: number[] = Array.from({ length: FEWEST }, () => Number.NEGATIVE_INFINITY);
  /** The number of the latest hold. */
  made = 0;
  /** The channel or client of the latest hold; the next hold usually has the same. */
  #of = "";
  /** All but the last character of its number. */
  #before = "";

  constructor(keep: number) {
    this.#keep = keep;
    this.#turnBlock(0);
  }

  /** R1: an id that was never used before. `of`: the channel, or the client. */
  next(of: string): string {
    const number = ++this.made;
    const last = number % DIGITS.length;
    if (last === 0 || of !== this.#of) {
      this.#of = of;
      this.#before = `${of}:${digitsOf(number).slice(0, -1)}`;
    }
    if (number % BLOCK === 0) this.#turnBlock(number / BLOCK);
    if (!this.#drawsAhead) this.#blocks[Math.floor(number / BLOCK) % this.#blocks.length] += newSecrets(1);
    return this.#before + DIGITS[last] + this.#secretOf(number);
  }

  /** Was this id made here, and recently enough to be remembered? */
  has(id: string): boolean {
    const number = numberOf(id);
    const oldest = this.made - this.#blocks.length * BLOCK;
    if (!(number > 0 && number <= this.made && number > oldest)) return false;
    return id.slice(-WIDTH) === digitsOf(number) + this.#secretOf(number);
  }

  #secretOf(number: number): string {
    const block = this.#blocks[Math.floor(number / BLOCK) % this.#blocks.length] ?? "";
    const at = (number % BLOCK) * SECRET;
    return block.slice(at, at + SECRET);
  }

  #turnBlock(block: number): void {
    const now = clocks.mono.now();
    const { length } = this.#blocks;
    // The last hold of the block to be forgotten was made before the first hold of the next block.
    const oldest = this.#times[(block + 1) % length] ?? now;
    if (oldest > now - this.#keep && length < MOST) {
      // A block's place is its number modulo the size, so after doubling it is the same place in one of
      // the two halves. The blocks of the other half belong to no hold. They get no time, otherwise
      // the next block would double the ring again.
      this.#blocks = [...this.#blocks, ...this.#blocks];
      const times = Array.from({ length: 2 * length }, () => Number.NEGATIVE_INFINITY);
      for (let old = block - length; old < block; old++)
        times[old % times.length] = this.#times[old % length] ?? now;
      this.#times = times;
    }
    const at = block % this.#blocks.length;
    this.#times[at] = now;
    // No hold has the number 0.
    if (this.#drawsAhead) this.#blocks[at] = newSecrets(BLOCK);
    else this.#blocks[at] = block === 0 ? newSecrets(1) : "";
  }
}

const digitsOf = (number: number): string => number.toString(36).padStart(NUMBER, "0");

/** The number in an id that a message names. NaN: it is no id of this form. */
export function numberOf(id: string): number {
  let number = 0;
  for (let at = id.length - WIDTH; at < id.length - SECRET; at++) {
    const code = codeAt(id, at);
    const isDigit = code >= ZERO && code < ZERO + 10;
    const isLetter = code >= A && code < A + 26;
    number = isDigit || isLetter ? 36 * number + code - (isDigit ? ZERO : A - 10) : Number.NaN;
  }
  return number;
}

/**
 * A client's id, or the beginning of a Redisson owner; then the number, then the random bits. The
 * pattern is unambiguous, so it never backtracks for long: texts of other libraries, of any length,
 * are matched here too.
 */
const OWN_ID =
  /^(?:[!-~]*?holdfast:client:)?((?:[\w.%-]+\/)?[\w.-]*:\d+:[0-9a-f]{16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?::\{\w+\})?:([0-9a-z]{8})[0-9a-z]{13}$/;

/**
 * A hold's id for people: `<client id>:<number>`. The random bits stay secret, and the channel says
 * no more than the client's id. Any other text is returned unchanged.
 */
export function withoutBits(id: string): string {
  return id.replace(
    OWN_ID,
    (_, client: string, number: string) => `${client}:${Number.parseInt(number, 36)}`,
  );
}

/**
 * The parts of the result of `withoutBits`; null: another library's id, such as Redisson's
 * `<uuid>:<number>`.
 */
export function partsOf(holder: string): HoldId | null {
  const [, client, host, pid, number] =
    /^((?:[\w.%-]*\/)?([\w.-]*):(\d+):[0-9a-f]{16}):(\d+)$/.exec(holder) ?? [];
  if (client === undefined || host === undefined) return null;
  return { host, pid: Number(pid), client, number: Number(number) };
}

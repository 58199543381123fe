import { startupSnapshot } from "node:v8";
import { clocks } from "../util/clock.ts";
import { drawBits } from "../util/random.ts";

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
 * Digits of the number and of the 64 random bits, in base 36: a fixed width, so that scripts and
 * people can cut an id by position.
 */
const NUMBER = 8;
const HIGH = 7;
const LOW = 6;

/** The codes of the digits in base 36. */
const DIGITS = Array.from({ length: 36 }, (_, digit) => digit.toString(36).charCodeAt(0));

/**
 * How many holds share one remembered time, the fewest holds that are remembered, and the most (2
 * MiB).
 */
const BLOCK = 256;
const FEWEST = 4 * BLOCK;
const MOST = 1_024 * BLOCK;

/**
 * The ids of a client's holds: `<channel>:<number><random>`, or `<client id>:…` for locks that are
 * not granted by message. The number counts the holds. The 64 random bits make an id a secret
 * between this client and Redis: a message that names a hold was written by a client that may read
 * the keys, or that received an earlier message about it.
 *
 * The bits are drawn for a block of holds at once, because one draw costs 2 µs, for one hold or for
 * 256.
 *
 * RACE: two processes that are started from one heap snapshot continue with the same client id and
 * the same number. Bits drawn ahead would be in that snapshot too, and one copy would take the
 * other copy's hold for its own (R1). So a client created while a snapshot is built always draws
 * per hold, when the hold is made.
 *
 * The bits of the latest holds are kept in a ring, indexed by hold number, because a grant may
 * arrive long after its hold was given up. A block is forgotten when its place is drawn anew: the
 * ring doubles if holds of that block are younger than `keep` ms.
 */
export class HoldIds {
  readonly #keep: number;
  readonly #ahead = startupSnapshot.isBuildingSnapshot() ? 1 : BLOCK;
  #bits = new Uint32Array(2 * FEWEST);
  /** When the first hold of each block was made. */
  #times = new Float64Array(FEWEST / BLOCK).fill(Number.NEGATIVE_INFINITY);
  #made = 0;
  /** The channel or client of the latest hold; the next hold usually has the same. */
  #of = "";
  #before = "";
  /**
   * The character codes of an id: one String.fromCharCode call makes one flat string, for half the
   * cost of joining pieces.
   */
  readonly #codes = Array.from({ length: NUMBER + HIGH + LOW }, () => 0);

  constructor(keep: number) {
    this.#keep = keep;
    this.#times[0] = clocks.mono.now();
    drawBits(this.#bits, 0, 2 * this.#ahead);
  }

  /** R1: an id that was never used before. `of`: the channel, or the client. */
  next(of: string): string {
    const number = ++this.#made;
    if (number % BLOCK === 0) this.#turnBlock(number);
    if (number % this.#ahead === 0) drawBits(this.#bits, (2 * number) % this.#bits.length, 2 * this.#ahead);
    if (of !== this.#of) {
      this.#of = of;
      this.#before = `${of}:`;
    }
    return this.#before + this.#idOf(number);
  }

  /** Was this id made here, and recently enough to be remembered? */
  has(id: string): boolean {
    const rest = id.slice(-NUMBER - HIGH - LOW);
    const number = Number.parseInt(rest.slice(0, NUMBER), 36);
    const oldest = this.#made - this.#bits.length / 2;
    return number > 0 && number <= this.#made && number > oldest && rest === this.#idOf(number);
  }

  /** The number and the bits. */
  #idOf(number: number): string {
    const at = (2 * number) % this.#bits.length;
    const first = this.#bits[at] ?? 0;
    const second = this.#bits[at + 1] ?? 0;
    // From the last digit to the first.
    let value = second & 0x7fffffff;
    for (let at = NUMBER + HIGH + LOW - 1; at >= 0; at--) {
      if (at === NUMBER + HIGH - 1) value = first * 2 + (second >>> 31);
      else if (at === NUMBER - 1) value = number;
      const rest = Math.floor(value / 36);
      this.#codes[at] = DIGITS[value - 36 * rest] ?? 0;
      value = rest;
    }
    return String.fromCharCode(...this.#codes);
  }

  #turnBlock(number: number): void {
    const now = clocks.mono.now();
    const block = number / BLOCK;
    const blocks = this.#times.length;
    // The last hold of the block to be forgotten was made before the first hold of the next block.
    const oldest = this.#times[(block + 1) % blocks] ?? now;
    if (oldest > now - this.#keep && blocks * BLOCK < MOST) {
      // A hold's place is its number modulo the size, so after doubling it is the same place in one
      // of the two halves. The blocks of the other half belong to no hold. They get no time,
      // otherwise the next block would double the ring again.
      const bits = new Uint32Array(2 * this.#bits.length);
      bits.set(this.#bits, 0);
      bits.set(this.#bits, this.#bits.length);
      this.#bits = bits;
      const times = new Float64Array(2 * blocks).fill(Number.NEGATIVE_INFINITY);
      for (let old = block - blocks; old < block; old++)
        times[old % times.length] = this.#times[old % blocks] ?? now;
      this.#times = times;
    }
    this.#times[block % this.#times.length] = now;
  }
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

import { startupSnapshot } from "node:v8";
import { clocks } from "../util/clock.ts";
import { drawBits } from "../util/random.ts";

/** A hold's id in its parts. */
export interface HoldId {
  /** The name of the holder's host: in Kubernetes that of its pod, where every `pid` is 1. */
  readonly host: string;
  readonly pid: number;
  /** The `id` of the holder's lock client. */
  readonly client: string;
  /** The number of the hold, of its client. */
  readonly number: number;
}

/**
 * Digits of the number and of the 64 random bits, in base 36: fixed, so that scripts and people can
 * cut an id by place.
 */
const NUMBER = 8;
const HIGH = 7;
const LOW = 6;

/** The codes of the digits in base 36. */
const DIGITS = Array.from({ length: 36 }, (_, digit) => digit.toString(36).charCodeAt(0));

/** Holds whose times are remembered together, the fewest holds that are remembered, and the most (2 MiB). */
const BLOCK = 256;
const FEWEST = 4 * BLOCK;
const MOST = 1_024 * BLOCK;

/**
 * The ids of a client's holds: `<channel>:<number><random>`, or where the lock is not granted by
 * message `<client id>:…`.
 * The number counts the holds; the 64 random bits make an id a secret between this client and
 * Redis, so a message that names one was written by a client that may read the keys, or that heard
 * an earlier message about it.
 *
 * The bits are drawn for a block of holds at once, because a draw costs 2 µs whether it is for one
 * hold or for 256. RACE: a process that is started twice from one snapshot of its heap goes on with
 * the same client id and the same number, twice.
 * Bits that were drawn ahead would be in that snapshot too, and a hold of one copy would be
 * "already mine" to the other one (R1). So a client that is made while a snapshot is built draws
 * for each hold when it makes it, for good.
 *
 * The bits of the latest holds are kept in a ring, at the place of their number, because a grant
 * may come for a hold long after it was given up. A block is forgotten when its place is drawn
 * anew: the ring doubles while holds of that block would be younger than `keep` ms.
 */
export class HoldIds {
  readonly #keep: number;
  readonly #ahead = startupSnapshot.isBuildingSnapshot() ? 1 : BLOCK;
  #bits = new Uint32Array(2 * FEWEST);
  /** When the first hold of each block was made. */
  #times = new Float64Array(FEWEST / BLOCK).fill(Number.NEGATIVE_INFINITY);
  #made = 0;
  /** Of the channel or client of the latest hold, which mostly has the next one too. */
  #of = "";
  #before = "";
  /**
   * The codes of the characters of an id: made at once it is one piece of text, which costs half of
   * what joined pieces do.
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

  /** Was this id made here, and not so long ago that it is forgotten? */
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
    // The last hold of the block that would be forgotten was made before the first one of the block
    // behind it.
    const oldest = this.#times[(block + 1) % blocks] ?? now;
    if (oldest > now - this.#keep && blocks * BLOCK < MOST) {
      // A number stands at its remainder by the size, so by twice the size it stands at the same
      // place of either half. What the other half has there is nobody's: it has no time, or the
      // next block would double the ring again.
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
 * A client's id, or that which Redisson's owners begin with; then the number, then the random bits.
 * It fits at one place only, and no part of it can be told from the next one in two ways: other
 * libraries' texts come here, of any length.
 */
const OWN_ID =
  /^(?:[!-~]*?holdfast:client:)?((?:[\w.%-]+\/)?[\w.-]*:\d+:[0-9a-f]{16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?::\{\w+\})?:([0-9a-z]{8})[0-9a-z]{13}$/;

/**
 * A hold's id as people see it: `<client id>:<number>`. The random bits are nobody's business, and
 * the channel says no more than the client's id does. Any other text stays as it is.
 */
export function withoutBits(id: string): string {
  return id.replace(
    OWN_ID,
    (_, client: string, number: string) => `${client}:${Number.parseInt(number, 36)}`,
  );
}

/** The parts of what `withoutBits` shows; null: another library's, such as Redisson's `<uuid>:<number>`. */
export function partsOf(holder: string): HoldId | null {
  const [, client, host, pid, number] =
    /^((?:[\w.%-]*\/)?([\w.-]*):(\d+):[0-9a-f]{16}):(\d+)$/.exec(holder) ?? [];
  if (client === undefined || host === undefined) return null;
  return { host, pid: Number(pid), client, number: Number(number) };
}

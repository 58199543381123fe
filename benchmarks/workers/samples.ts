import { seeded } from "../../tools/numbers.ts";

const FIELDS = 5;
/** Acquisitions of one process that are kept one by one: more would not fit into one line of JSON. */
const MOST = 2 ** 19;

/**
 * What happened, five numbers for each acquisition, in one growing array: recording must cost next
 * to nothing. Where there are too many, half of them are dropped at random, and of later ones as
 * many.
 */
export class Samples {
  /** Of all acquisitions, also those that were dropped. */
  count = 0;
  #numbers = new Float64Array(FIELDS * 4_096);
  #length = 0;
  /** The part of the acquisitions that is kept. */
  #part = 1;
  readonly #random = seeded(1);

  push(caller: number, name: number, asked: number, acquired: number, left: number): void {
    this.count++;
    if (this.#part < 1 && this.#random() >= this.#part) return;
    if (this.#length === FIELDS * MOST) this.#thin();
    if (this.#length === this.#numbers.length) {
      const larger = new Float64Array(this.#length * 2);
      larger.set(this.#numbers);
      this.#numbers = larger;
    }
    const at = this.#length;
    this.#numbers[at] = caller;
    this.#numbers[at + 1] = name;
    this.#numbers[at + 2] = asked;
    this.#numbers[at + 3] = acquired;
    this.#numbers[at + 4] = left;
    this.#length += FIELDS;
  }

  toBase64(): string {
    return Buffer.from(this.#numbers.buffer, 0, this.#length * 8).toString("base64");
  }

  /** At random: every second one could be those of every second caller. */
  #thin(): void {
    const length = this.#length;
    this.#part /= 2;
    this.#length = 0;
    for (let at = 0; at < length; at += FIELDS) {
      if (this.#random() < 0.5) continue;
      this.#numbers.copyWithin(this.#length, at, at + FIELDS);
      this.#length += FIELDS;
    }
  }
}

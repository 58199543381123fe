const FIELDS = 5;

/** What happened, five numbers for each acquisition, in one growing array: recording must cost next to nothing. */
export class Samples {
  #numbers = new Float64Array(FIELDS * 4_096);
  #length = 0;

  get count(): number {
    return this.#length / FIELDS;
  }

  push(caller: number, name: number, asked: number, acquired: number, left: number): void {
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
}

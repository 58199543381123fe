/**
 * The part of a key that determines its hash slot: its tag, if it has a non-empty one, otherwise
 * all of it.
 */
export function hashed(key: string): string {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

/**
 * The hash slot of a key or a sharded channel: CRC16 (XMODEM) of its tag or of all of it. The
 * package that ioredis uses for this skips an empty tag and finds another slot than Redis.
 */
export function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(hashed(key))) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc & 0x3fff;
}

/**
 * One key for each hash slot in use: the result of `make` for the shortest tag with that slot. Tags
 * are tried once, in order, as far as needed: the first slot costs a few milliseconds, all 16 384
 * together some hundred.
 */
export class SlotKeys {
  readonly #make: (tag: string) => string;
  readonly #found = new Map<number, string>();
  #tried = 0;

  constructor(make: (tag: string) => string) {
    this.#make = make;
  }

  /** Never ends for a slot that no tag reaches: check `hasOneSlotPerLock` first. */
  of(slot: number): string {
    for (;;) {
      const known = this.#found.get(slot);
      if (known !== undefined) return known;
      const key = this.#make((this.#tried++).toString(36));
      const at = slotOf(key);
      if (!this.#found.has(at)) this.#found.set(at, key);
    }
  }
}

/** Percent of `maxmemory` in use from which Redis is nearly full. */
const NEARLY_FULL = 90;

/** What the memory of Redis means for locks, as the page and the command line say it. */
export interface MemoryTrouble {
  readonly isFull: boolean;
  readonly title: string;
  /** Goes on after the title and a colon, without a full stop. */
  readonly text: string;
}

/** `memory`: percent of `maxmemory` in use, at most 100; null: not known. Null: nothing is wrong. */
export function memoryTrouble(memory: number | null): MemoryTrouble | null {
  if (memory === null || memory < NEARLY_FULL) return null;
  const isFull = memory === 100;
  return {
    isFull,
    title: isFull ? "Redis is full" : "Redis is nearly full",
    text: isFull
      ? "its memory has reached maxmemory, so new calls cannot take locks"
      : `${memory} % of maxmemory is in use, and at 100 % new calls cannot take locks`,
  };
}

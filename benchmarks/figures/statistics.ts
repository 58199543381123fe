export function median(values: readonly number[]): number {
  const ascending = Float64Array.from(values).sort();
  const middle = ascending.length >> 1;
  const upper = ascending[middle] ?? 0;
  return ascending.length % 2 === 1 ? upper : ((ascending[middle - 1] ?? 0) + upper) / 2;
}

/** Jain's fairness index: (Σx)² / (n · Σx²). 1 when all have the same, 1/n when one has everything. */
export function jain(shares: readonly number[]): number {
  let sum = 0;
  let squares = 0;
  for (const share of shares) {
    sum += share;
    squares += share * share;
  }
  return squares === 0 ? 1 : (sum * sum) / (shares.length * squares);
}

/** So many values of an ascending list, evenly picked, the first and the last among them. */
export function pick(ascending: Float64Array, count: number): number[] {
  if (ascending.length <= count) return [...ascending];
  return Array.from(
    { length: count },
    (_, i) => ascending[Math.round((i * (ascending.length - 1)) / (count - 1))] ?? 0,
  );
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : (sum(values) ?? 0) / values.length;
}

/** Null when one of them is. */
export function sum(values: readonly (number | null)[]): number | null {
  let total = 0;
  for (const value of values) {
    if (value === null) return null;
    total += value;
  }
  return total;
}

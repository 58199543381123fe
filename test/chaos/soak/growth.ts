import type { Usage } from "../worker/usage.ts";

/** What a worker that was never killed had, in order: after the warm-up, in the middle, at the end. */
export interface Measured {
  readonly by: string;
  readonly usages: readonly Usage[];
}

const MIB = 2 ** 20;

/**
 * By how much the last figure may exceed the first. What leaks in each call is a hundred times that
 * after some minutes.
 */
const BOUNDS: readonly { readonly what: keyof Usage; readonly words: string; most(first: number): number }[] =
  [
    { what: "heap", words: "MiB of heap after GC", most: (first) => 1.1 * first + 2 * MIB },
    { what: "descriptors", words: "file descriptors", most: (first) => first + 2 },
    { what: "active", words: "active timers and handles", most: (first) => first + 3 },
  ];

const show = (what: keyof Usage, value: number): string =>
  what === "heap" || what === "rss" ? (value / MIB).toFixed(1) : `${value}`;

/** A line for each worker and figure, and those that have grown beyond their bound. */
export function growth(all: readonly Measured[]): { lines: string[]; broken: string[] } {
  const broken: string[] = [];
  const lines = all.flatMap(({ by, usages }) =>
    BOUNDS.map(({ what, words, most }) => {
      const figures = usages.map((one) => one[what]);
      const [first = 0] = figures;
      const bound = most(first);
      const line = `worker ${by}: ${words} ${figures.map((value) => show(what, value)).join(" → ")} (at most ${show(what, bound)})`;
      if ((figures.at(-1) ?? 0) > bound) broken.push(line);
      return line;
    }),
  );
  return { lines, broken };
}

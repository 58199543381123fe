/**
 * In CI the one whose turn it is, by the commit's hash (`HOLDFAST_TURN`); elsewhere all. For tests that
 * do the same with each of many things, and take a minute together.
 */
export function inTurn<T>(all: readonly T[]): readonly T[] {
  const turn = process.env.HOLDFAST_TURN;
  return turn === undefined ? all : all.slice(Number(turn) % all.length).slice(0, 1);
}

/** So many parts of all. */
export const partsOf = <T>(all: readonly T[], parts: number): T[][] =>
  Array.from({ length: parts }, (_, part) => all.filter((_, i) => i % parts === part));

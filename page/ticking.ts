import { say } from "./dom.ts";
import { time } from "./format.ts";

// Times go on between two looks. They count from when they were seen, by the clock of this browser alone.

interface Ticking {
  readonly show: (passed: number) => void;
  since: number;
}

const all = new Map<Element, Ticking>();
/** When the last answer was true, where nothing newer comes; null: times go on. */
let still: number | null = null;

const now = (): number => still ?? performance.now();

/** Shows a time that grows by itself. Null: none. */
export function grow(element: Element, ms: number | null, age: number | null): void {
  if (ms === null) {
    all.delete(element);
    say(element, "–");
  } else tick(element, age, (passed) => say(element, time(ms + passed)));
}

/** `age`: of what is shown; null: Redis has answered nothing yet, so nothing passes. */
export function tick(element: Element, age: number | null, show: (passed: number) => void): void {
  const since = performance.now() - (age ?? 0);
  all.set(element, { show, since });
  show(Math.max(0, now() - since));
}

/**
 * From now on times stand where they were when Redis answered last, at that time of this clock:
 * what has become of them is not known. Null: they go on.
 */
export function standStill(at: number | null): void {
  if (at === still) return;
  still = at;
  showAll();
}

function showAll(): void {
  const at = now();
  for (const [element, { show, since }] of all)
    if (element.isConnected) show(Math.max(0, at - since));
    else all.delete(element);
}

/** `each`: done before each step. */
export function startTicking(each: () => void): void {
  setInterval(() => {
    if (document.hidden) return;
    each();
    if (still === null) showAll();
  }, 500);
}

import { say } from "./dom.ts";
import { time } from "./format.ts";

// Times go on between two looks. They count from when they were seen, by the clock of this browser alone.

interface Ticking {
  readonly show: (passed: number) => void;
  since: number;
}

const all = new Map<Element, Ticking>();

/** Shows a time that grows by itself. Null: none. */
export function grow(element: Element, ms: number | null, age: number): void {
  if (ms === null) {
    all.delete(element);
    say(element, "–");
  } else tick(element, age, (passed) => say(element, time(ms + passed)));
}

export function tick(element: Element, age: number, show: (passed: number) => void): void {
  const since = performance.now() - age;
  all.set(element, { show, since });
  show(performance.now() - since);
}

export function startTicking(): void {
  setInterval(() => {
    if (document.hidden) return;
    const now = performance.now();
    for (const [element, { show, since }] of all)
      if (element.isConnected) show(now - since);
      else all.delete(element);
  }, 500);
}

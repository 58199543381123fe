import type { Story } from "./story.ts";

/** ms after a fault until its effects are over: the hold of a dead process, a window, a re-check. */
const SETTLED = 7_000;

/** The stretches of a history, in µs, in which nothing was wrong, nor had been shortly before. */
export function calmStretches(story: Story): { from: number; to: number }[] {
  const restless = story.troubles
    .map(({ from, to }) => ({ from, to: to + SETTLED * 1_000 }))
    .sort((one, other) => one.from - other.from);
  const calm = [];
  let from = story.calls[0]?.asked ?? story.over;
  for (const trouble of restless) {
    if (trouble.from > from) calm.push({ from, to: trouble.from });
    from = Math.max(from, trouble.to);
  }
  if (story.over > from) calm.push({ from, to: story.over });
  return calm;
}

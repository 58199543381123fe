/** Makes events happen some ms after they came, in the order in which they came. */
export class DelayLine {
  readonly #waiting: { due: number; event: () => void }[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** With 0 ms, and no event before it, the event happens at once. */
  push(event: () => void, ms: number): void {
    if (ms === 0 && this.#waiting.length === 0) {
      event();
      return;
    }
    // Never before the one in front of it, even if the delay is shorter now.
    const previous = this.#waiting.at(-1)?.due ?? 0;
    this.#waiting.push({ due: Math.max(previous, performance.now() + ms), event });
    this.#timer ??= this.#wake();
  }

  /** Waiting events do not happen any more. */
  clear(): void {
    this.#waiting.length = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #wake(): NodeJS.Timeout {
    const [first] = this.#waiting;
    return setTimeout(() => this.#release(), Math.max(0, Math.ceil((first?.due ?? 0) - performance.now())));
  }

  #release(): void {
    const now = performance.now();
    const ripe = this.#waiting.findIndex(({ due }) => due > now);
    for (const { event } of this.#waiting.splice(0, ripe === -1 ? this.#waiting.length : ripe)) event();
    this.#timer = this.#waiting.length > 0 ? this.#wake() : undefined;
  }
}

/** Where all callers of a worker stop between two calls when they are told to. */
export class Rest {
  readonly #callers: number;
  #begun: Promise<void> | null = null;
  #go = () => {};
  #resting = 0;
  #all = () => {};

  constructor(callers: number) {
    this.#callers = callers;
  }

  /** Resolves when no call is under way. */
  begin(): Promise<void> {
    this.#begun ??= new Promise((resolve) => {
      this.#go = resolve;
    });
    return new Promise((resolve) => {
      this.#all = resolve;
      if (this.#resting === this.#callers) resolve();
    });
  }

  end(): void {
    this.#begun = null;
    this.#go();
  }

  /** A caller has no call under way; resolves when it may begin the next one. */
  async between(): Promise<void> {
    while (this.#begun) {
      if (++this.#resting === this.#callers) this.#all();
      await this.#begun;
      this.#resting--;
    }
  }
}

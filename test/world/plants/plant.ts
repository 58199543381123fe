/** A bug, planted on purpose: the checks of random runs, or a test of its own, must find it. */
export interface Plant {
  /** In a few words, unique. */
  readonly name: string;
  /** What is wrong then. It stays true when the code that is patched here has been replaced. */
  readonly bug: string;
  /** What docs/guarantees.md promises, and this breaks. */
  readonly promise: string;
  /** The file that is patched: what it replaces is in it exactly once. */
  readonly file: string;
  readonly replaces: string;
  readonly by: string;
  /**
   * The test that finds it, for what random runs cannot express or meet too rarely. Left out: random
   * runs find it.
   */
  readonly test?: {
    readonly file: string;
    readonly title: string;
    /** The project of vitest that runs it. */
    readonly project: string;
  };
}

/** A bug, planted on purpose: the checks of the world, or a test outside of it, must find it. */
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
  /** A test outside of the world, for what the world cannot express. Without it the world finds the bug. */
  readonly test?: {
    readonly file: string;
    readonly title: string;
    /** The project of vitest that runs it. */
    readonly project: string;
  };
}

/** Processes of which one at a time is chosen. What they do is measured once, printed, and not saved. */
export interface Fleet {
  readonly name: string;
  readonly about: string;
  /** Measures and prints. @returns false when something happened that must not happen */
  measure(url: string, seed: number, signal: AbortSignal): Promise<boolean>;
}

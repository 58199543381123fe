import type { TransactionConnection } from "./session.ts";

/** The caller's connection, and how connections of our own lead where it leads. */
export interface Source {
  /** Is it closed? */
  readonly isOver: boolean;
  /** Calls that when it is closed. */
  onEnd(ended: () => void): void;
  /**
   * The hash slot of these keys; null: it is no Cluster.
   *
   * @throws RangeError for keys of a Cluster that no single server has.
   */
  slotOf(keys: readonly string[]): number | null;
  /** Makes a Cluster read again where its slots are. */
  refresh(): void;
  /** The server and database that have the keys, and how to connect to them. */
  placeOf(slot: number | null): { readonly name: string; connect(): TransactionConnection };
}

/** What a caller wants of a lease, checked and with defaults filled in. */
export interface Terms {
  /** ms. */
  readonly lease: number;
  /** Renew it while it is held. False: it ends after `lease` ms, come what may. */
  readonly watchdog: boolean;
  /** The watchdog stops after this many ms. */
  readonly maxHold: number;
}

import type { RenewAnswer } from "../scripts/answers.ts";

/** Raises the TTL of holds of one lock kind: up to a hundred in one call, an answer for each, in order. */
export interface Renewer {
  /** `ttl` in ms, counted from now; never shortens. Rejects when there was no answer within `timeout` ms. */
  renew(holds: readonly { name: string; id: string; ttl: number }[], timeout: number): Promise<RenewAnswer[]>;
}

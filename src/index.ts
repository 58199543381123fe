export { createLockClient, type LockClient } from "./client.ts";
export {
  ClientClosedError,
  isLockLost,
  LockError,
  type LockErrorCode,
  LockLostError,
  LockTimeoutError,
  LockUnavailableError,
  type LossReason,
  NotReplicatedError,
} from "./errors.ts";
export type { LockEvents } from "./events.ts";
export type { Lease } from "./lease/lease.ts";
export type { Lock, LockBody } from "./locks/lock.ts";
export type { CloseOptions, LockClientOptions, LockOptions, QuorumClientOptions } from "./options.ts";
export type { ClusterLike, RedisLike, SubscriberLike } from "./redis-like.ts";
export type { QuorumClient } from "./redlock/quorum-client.ts";
export type { Inspection } from "./scripts/answers.ts";

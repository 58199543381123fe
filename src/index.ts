export type { Check, CheckedServer } from "./check/answer.ts";
export { createLockClient } from "./client.ts";
export type { Election, LeaderBody } from "./election/election.ts";
export type { CampaignOptions, ElectionOptions, LeadOptions, ObserveOptions } from "./election/options.ts";
export type { Term } from "./election/term.ts";
export {
  ClientClosedError,
  ConflictError,
  DeadlockError,
  type DeadlockLink,
  FencedWriteError,
  isLockLost,
  LockError,
  type LockErrorCode,
  LockFormatError,
  LockLostError,
  LockTimeoutError,
  LockUnavailableError,
  LockWantedError,
  type LossReason,
  NotReplicatedError,
  PermitsError,
  StaleTokenError,
  TransactionError,
} from "./errors.ts";
export type { EventKind, LockEvent, LockEvents } from "./events.ts";
export type { GiveUpReason } from "./give-up.ts";
export type { Listed, ListedKind, ListOptions } from "./list/listed.ts";
export type { LockClient, LockStats } from "./lock-client.ts";
export type { BaseLease, Lease, UnfencedLease } from "./locks/lease.ts";
export type { Inspection, Lock, LockBody } from "./locks/lock.ts";
export type { MultiLease } from "./locks/multi-lease.ts";
export type { MultiLock, MultiLockBody } from "./locks/multi-lock.ts";
export type { SemaphoreOptions } from "./locks/permit-arguments.ts";
export type { ReadWriteInspection, ReadWriteLock } from "./locks/read-write-lock.ts";
export type { PermitBody, PermitLease, Semaphore, SemaphoreInspection } from "./locks/semaphore.ts";
export type { OnceOptions } from "./once/options.ts";
export type { OnceResult, Turn } from "./once/turn.ts";
export type {
  BodyOptions,
  CheckOptions,
  CloseOptions,
  ForceUnlockOptions,
  LingerOptions,
  LockClientOptions,
  LockOptions,
  PassingOptions,
  ReadWriteOptions,
  RecallOptions,
} from "./options.ts";
export type { HoldingParty, Party, WaitingParty } from "./party.ts";
export type { Leader } from "./redis/election-replies.ts";
export type { Inspected } from "./redis/replies.ts";
export type { ClusterLike, RedisArgument, RedisLike, SubscriberLike } from "./redis/types.ts";
export type { ReentranceOptions } from "./reentrance.ts";
export type { Recalled } from "./waiting/keepers.ts";

import { visible } from "../util/visible.ts";

/**
 * A holder or a waiter, as people see it. These names mean the same wherever holders, waiters and
 * locks are shown: in `inspect()`, `list()`, errors, events, elections, the page's JSON and the
 * command line's `--json`. JSON has no Infinity, so no end is null there.
 *
 * | field | what | null |
 * |---|---|---|
 * | `id`, `label`, `host`, `pid` | of a `Party`: below | below |
 * | `holder` | the `Party` that holds; of several the longest holder | it is free |
 * | `holders` | all of them, where several may hold | – |
 * | `waiters` | waiting processes in the order of their places, the next one first; `[]`: no process waits | Redis keeps no queue of this kind (spin, Redisson, several masters) |
 * | `since` | ms since 1970 by the server's clock, when it began to hold or wait | not recorded in Redis |
 * | `heldFor`, `waitedFor` | the same as ms up to when Redis was asked; for events, the page's timeline and `run`, up to its end | not recorded in Redis |
 * | `remaining` | whole ms until the hold ends unless it is renewed; Infinity: no end is set | it is free |
 * | `token` | the fencing token of the hold | it is free, or its kind has none |
 * | `units` | permits of a semaphore; of others 1 | – |
 * | `mode` | "read" or "write" of a read-write lock | it is another kind |
 * | `name`, `kind` | of the lock | – |
 * | `kept` | its holder may have it cached (`linger`); in an `acquire` event: this process had it cached | – |
 * | `permits`, `isSet`, `used` | of a semaphore: how many there are, whether `setPermits()` set that, how many are held | no number is known |
 * | `value` | what a leader publishes | it is no election, or has another leader by now |
 * | `at` | when that was so: ms since 1970 by the server's clock | this kind does not record it |
 * | `here` | the callers of this client alone: `waiting`, `longest` | – |
 * | `waiting` | how many callers of this client wait: one process may have many | – |
 * | `longest` | ms that the longest wait has lasted | none waits |
 * | `client` | the id of a lock client | – |
 * | `call` | a number of the client's for each call that has events | – |
 * | `heldBy` | where the holder is, as far as the client knows | – |
 * | `passed` | another caller of this process had it before, and no other process in between | – |
 * | `firstToken` | of the first of the callers that may have been without the lock | – |
 * | `error`, `why` | what a call or a lease ended with; the same in a word | – |
 * | `cycle` | of a deadlock: the locks with their holders, each of which waits for the next lock | – |
 * | `deaf` | clients that receive no messages, and why | – |
 * | `rejected` | one of these callers waits no longer | – |
 */
export interface Party {
  /**
   * `<client id>:<number of the hold>`; for another library's hold, its own text; for a leader that
   * has published its address, the id of its client.
   */
  readonly id: string;
  /**
   * The `label` of the call, otherwise of its client; null: neither has one. It is that caller's
   * own text, control characters included: escape it before you print it.
   */
  readonly label: string | null;
  /**
   * The name of its host: in Kubernetes its pod's, where every `pid` is 1. Null: another library
   * wrote it.
   */
  readonly host: string | null;
  readonly pid: number | null;
  /**
   * When it began to hold the lock, or to wait for it: ms since 1970 by the server's clock. Null:
   * unknown.
   */
  readonly since: number | null;
}

/* What the page's JSON has beside these (src/tools/ui/shown.ts):
 *
 * | field | what |
 * |---|---|
 * | `view`, `actions` | which view it is; what users of the page may do |
 * | `age`, `due`, `trouble` | ms since Redis answered; ms of age at which there should be something newer; why there is nothing newer |
 * | `isPartial`, `isCut`, `isByName` | there will be more; there is more; the search has read only names |
 * | `unread`, `untold` | what could not be read, in a sentence: of callers that wait; of observed processes |
 * | `locks`, `lock`, `fitting` | locks of a list; the one that is shown; how many match the search |
 * | `total`, `heldLocks`, `waitedLocks`, `longLocks` | how many locks there are; how many of them are held, waited for, and waited for since 10 s or longer |
 * | `allAge` | ms since all locks had been read, of which the line on top tells |
 * | `worst`, `oldest`, `usual` | the lock with the longest wait; the one whose holder is far older than usual; ms: half of the locks have been held for less |
 * | `longWaits`, `oldHolds` | how many locks have such waits; such holders |
 * | `restart`, `isCertain`, `held`, `gone` | Redis restarted or failed over; its run id changed; how many locks were held before; how many of these lost their holders |
 * | `memory` | percent of `maxmemory` in use, where nothing is evicted |
 * | `server`, `roundTrip`, `usedMemory`, `maxMemory` | Redis as it answered last: ms from a command to its answer; bytes in use, and the limit |
 * | `holderCount`, `waitingProcesses` | how many hold a lock of a list; how many processes wait for it, or for a name |
 * | `lease` | ms that a lease lasts from its last renewal, as far as the page has seen |
 * | `renewed` | ms since the lease was renewed, if the page knows |
 * | `unrenewed` | ms since the lease was renewed, if that is overdue for certain |
 * | `lost`, `losses` | the last loss of a lock; how many there were |
 * | `reported`, `how`, `ago`, `site` | the calls for a lock that observed processes reported, the latest first: what came of each; ms ago; the line of the application that called |
 * | `waitTimes`, `waits`, `p95`, `processes` | by lock and step of time, how many calls waited; how long 95 of 100 did at most; how many processes reported it (`null`: the page has no connection for that) |
 * | `deadlocks`, `deadlocked`, `circles`, `isSure` | how many there are for sure; their locks; all that were found; is it one for sure? |
 * | `waitsFor` | the lock that a caller of a circle waits for |
 * | `clients`, `blocks` | which clients hold what others wait for; one client's locks |
 * | `calls`, `circle`, `isElsewhere` | of a client: how many of its calls wait; it waits for itself; it is shown elsewhere |
 * | `demo` | the fleet of a demo, with its knobs; null: these locks are none of a demo |
 * | `done`, `said` | of an action: was it done; the outcome, in a sentence |
 *
 * … and `--json` of the command line:
 *
 * | field | what |
 * |---|---|
 * | `outcome`, `code`, `signal`, `message` | the outcome of a command: in a word, its exit code, the signal that ended it, a sentence |
 * | `names`, `tokens` | of `run` and `elect`: the locks, and the token of each |
 * | `broken`, `answer`, `url` | of `break`: how many holds; of `recall`: its outcome; of `ui`: where the page is |
 * | `ok`, `problems`, `warnings`, `unknown`, `servers` | of `doctor`, as `check()` says it |
 * | `place`, `version`, `evictionPolicy`, `replicas`, `clockAhead` | of a server |
 * | `latency`, `roundTrip`, `handOff`, `delivery` | ms: of a command and its answer, from an unlock to the next holder, of a message |
 * | `leftovers`, `heldLocks`, `longestHeld`, `longestWait`, `endless`, `missing` | what is in Redis: how many locks are held and waited for, the longest-held one, the one with the longest wait, those without an end, why it is unknown |
 *
 * test/cli/names.test.ts compares the output with these tables. */

/** A party that holds, with what it has. */
export interface HoldingParty extends Party {
  /** ms that it has held the lock. Null: unknown. */
  readonly heldFor: number | null;
  /** ms until its hold ends unless it is renewed; Infinity: no end is set. */
  readonly remaining: number;
  /** Its fencing token. Null: its kind has none. */
  readonly token: number | null;
  /** Permits of a semaphore; of others 1. */
  readonly units: number;
  /** Of a read-write lock. Null: it is another kind. */
  readonly mode: "read" | "write" | null;
}

/** A waiting process, or at a fair lock a waiting caller, and what it wants. */
export interface WaitingParty extends Party {
  /** ms that it has waited. Null: unknown. */
  readonly waitedFor: number | null;
  /** Permits of a semaphore; of others 1. */
  readonly units: number;
  /** Of a read-write lock. Null: it is another kind. */
  readonly mode: "read" | "write" | null;
}

/**
 * Its name in messages and on the command line: "nightly invoice (web-1:4711)", "web-1:4711", or
 * the id that another library wrote.
 */
export function showParty({ label, host, pid, id }: Omit<Party, "since">): string {
  // Another library's id may have any length.
  if (host === null) return visible(label ?? id.slice(0, ID_SHOWN));
  const place = `${visible(host)}:${pid}`;
  return label === null ? place : `${visible(label)} (${place})`;
}

const ID_SHOWN = 100;

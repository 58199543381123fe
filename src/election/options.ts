import { SHORT_LEASE, VALUE_BYTES_MAX } from "../defaults.ts";
import { quote } from "../errors.ts";
import { LABEL } from "../label.ts";
import {
  type Checked,
  checkBody,
  checkOptions,
  checkValue,
  orInfinity,
  type Rule,
  refuse,
  signal,
  time,
} from "../validate.ts";

/** How an election is held. */
export interface ElectionOptions {
  /**
   * For how many ms a term lasts unless it is renewed, from 100: a leader renews it every third of that time. The others wait for so
   * long when it has crashed. It is each candidate's own. Default: the client's `leaseTime`, 30 000.
   */
  lease?: number | undefined;
  /**
   * What this candidate is called where people look: in `leader()`, `observe()` and `locks.list()`, while it waits and while it
   * leads. 1 to 64 bytes of UTF-8. Default: the label of the client.
   */
  label?: string | undefined;
}

/** How a candidate leads. */
export interface LeadOptions {
  /** What is told of it to observers: a string of at most 4 096 bytes of UTF-8. Default: "". */
  value?: string | undefined;
  /** Ends the candidacy. */
  signal?: AbortSignal | undefined;
}

/** How a candidate campaigns. */
export interface CampaignOptions extends LeadOptions {
  /** For how many ms to wait until it leads; Infinity is allowed, and 0 asks once. Default: Infinity. */
  wait?: number | undefined;
  /** Ends the waiting, and only that: the call rejects with `signal.reason`. */
  signal?: AbortSignal | undefined;
}

/** How an election is observed. */
export interface ObserveOptions {
  /** Ends the observation, as `return()` does: without an error. */
  signal?: AbortSignal | undefined;
}

const VALUE: Rule<string> = {
  wanted: `a well-formed string of at most ${VALUE_BYTES_MAX} bytes of UTF-8`,
  fits: (value) =>
    typeof value === "string" && value.isWellFormed() && Buffer.byteLength(value) <= VALUE_BYTES_MAX,
  type: "string",
  fallback: "",
};

const ELECTION = { lease: time(SHORT_LEASE, undefined), label: LABEL };
const LEAD = { value: VALUE, signal };
const CAMPAIGN = { ...LEAD, wait: orInfinity(time(0, Number.POSITIVE_INFINITY)) };
const OBSERVE = { signal };

/** What begins the messages about an election that is not made. */
export const CREATE = "Cannot create an election";

export const checkElection = (options: unknown): Checked<typeof ELECTION> =>
  checkOptions(CREATE, ELECTION, options);

/** Of `runAsLeader(body)` or `runAsLeader(options, body)`. */
export function checkLead<Body>(
  name: string,
  args: readonly unknown[],
): Checked<typeof LEAD> & { readonly body: Body } {
  const { options, body } = checkBody<Body>(`Cannot lead ${quote(name)}`, "runAsLeader", args);
  return { ...checkOptions(`Cannot lead ${quote(name)}`, LEAD, options), body };
}

export const checkCampaign = (name: string, options: unknown): Checked<typeof CAMPAIGN> =>
  checkOptions(`Cannot campaign for ${quote(name)}`, CAMPAIGN, options);

export const checkObserve = (name: string, options: unknown): Checked<typeof OBSERVE> =>
  checkOptions(`Cannot observe ${quote(name)}`, OBSERVE, options);

/** What is proclaimed: not printed whole, because it may be long. */
export function checkProclaimed(name: string, value: unknown): string {
  const what = `Cannot proclaim the leader of ${quote(name)}`;
  if (value === undefined) throw refuse(TypeError, what, "value", VALUE.wanted, value);
  return checkValue(what, "value", value, VALUE);
}

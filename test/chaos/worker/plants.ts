import { createHash } from "node:crypto";
import { Hold } from "../../../src/core/lease/hold.ts";
import { SharedLease } from "../../../src/core/lease/shared-lease.ts";
import { Place } from "../../../src/core/place.ts";
import { Waiter } from "../../../src/core/waiter.ts";
import { RECHECKS } from "../../../src/defaults.ts";
import { LeaderTerm } from "../../../src/election/term.ts";
import { QuorumNode } from "../../../src/quorum/node.ts";
import { Quorum } from "../../../src/quorum/quorum.ts";
import { countedLua, handoffLua, onceLua, rememberLua } from "../../../src/redis/lua.generated.ts";
import { ElectionKind } from "../../../src/wires/election.ts";

/** Bugs that are planted to see whether the checker finds them. They live in the worker's process only. */
export const plants = {
  /** The script grants a lock without a look at its holder. */
  "grant unchecked"() {
    for (const script of ["acquire", "firstAcquire"] as const)
      patch(
        script,
        "local left\nif not value then",
        "value, now = nil, tonumber(text)\nlocal left\nif not value then",
      );
  },

  /** A release ends the hold that it finds, not its own: a second copy of it ends the next holder's. */
  "release unowned": () =>
    patch("release", "if not value or sub(value, 38) ~= ARGV[1] then", "if not value then"),

  /** The holder believes in its lease for a lease too long. */
  "deadline late"() {
    const { left } = SharedLease.prototype;
    SharedLease.prototype.left = function (...at) {
      return left.apply(this, at) + this.terms.lease;
    };
  },

  /** Tokens are counted, and begin again when the server has forgotten the last one. */
  "tokens counted"() {
    for (const script of scripts) {
      const { lua } = handoffLua[script];
      if (lua.includes(TIME_TOKEN))
        patch(script, TIME_TOKEN, "local token = math.max(before + 1, 1000000000000000)");
      // Not by the common way, which knows no other tokens than the time.
      if (lua.includes(COMMON_WAY)) patch(script, COMMON_WAY, "#text == 0");
    }
  },

  /** Nobody tells a waiter why it does not get the lock: aborted calls, and those that fail, never end. */
  "no refusals"() {
    Waiter.prototype.refuse = () => false;
  },

  /** Of a kept lock: it is given up when somebody wants it, and taken again all the same. */
  "kept after a recall"() {
    const { recalled } = Place.prototype;
    Place.prototype.recalled = function (...args) {
      const { hold, kind, isKept } = this;
      if (!hold || !isKept) return recalled.apply(this, args);
      kind.release(hold, { answered() {}, failed() {} });
      setTimeout(() => recalled.apply(this, args), 30);
    };
  },

  /** Of what is shared: a script that takes out what is over gives it to nobody. */
  "a reap that tells nobody": () =>
    patchAll(
      countedLua,
      "advance = function(me, lease)",
      "advance = function(me, lease)\nif goes then return end",
    ),

  /**
   * Of what is shared: a waiter that finds its place at the head takes what it wants, and leaves
   * those behind it waiting. So that they do not find that by themselves, only the first place
   * looks for what is over.
   */
  "a run that ends at the caller's own place"() {
    patchAll(countedLua, "myToken, myUnits = token, gets", "out[#out + 1] = entries[i]\nreturn token, gets");
    const [first, second] = RECHECKS as unknown as { before: number; period: number }[];
    if (first) first.before = 1;
    if (second) second.period = 30_000;
  },

  /** Of what is shared: a second copy of what makes a writer a reader frees a writer's units once more. */
  "a late shrink"() {
    patchAll(
      countedLua,
      "if isMine and units > stays then",
      "if isMine and (units > stays or stays > 0) then",
      ["release"],
    );
    const freed = "used - (stays > 0 and 1000000 or units) + stays";
    patchAll(countedLua, "used - units + stays", freed, ["release"]);
  },

  /** What was granted while a process stood still begins when it reads so, however long ago it was over. */
  "a revived hold"() {
    const { owned } = Hold.prototype;
    Hold.prototype.owned = function (grant, sent, ...rest) {
      owned.call(this, grant, sent, ...rest);
      if (sent) return;
      this.endMono = performance.now() + grant.ttl;
      this.endWall = Date.now() + grant.ttl;
    };
  },

  /** Of a semaphore: a number of permits that is below the last one changes nothing. */
  "a number that is never lowered": () =>
    patchAll(
      countedLua,
      '"s", tonumber(ARGV[1]), asked, true',
      '"s", math.max(permits or 0, tonumber(ARGV[1])), asked, true',
    ),

  /** Of an election: those that observe are answered from what was true a while ago. */
  "an observer that is shown the past"() {
    const { observe } = ElectionKind.prototype;
    let known: { readonly until: number; readonly answer: ReturnType<typeof observe> } | undefined;
    ElectionKind.prototype.observe = async function (name) {
      if (known && performance.now() < known.until) return known.answer;
      const answer = await observe.call(this, name);
      if (answer.leader) {
        const copy = Promise.resolve({ ...answer, ttl: OLD });
        known = { until: performance.now() + OLD, answer: copy };
      }
      return answer;
    };
  },

  /** Of an election: a leader's signal tells no loss. */
  "a loss that no signal tells"() {
    Object.defineProperty(LeaderTerm.prototype, "signal", { get: () => new AbortController().signal });
  },

  /** Of what runs once per interval: a run that has ended frees its turn. */
  "a turn that ends with its run": () => patchAll(onceLua, "if left <= 0 then", "if left then"),

  /** Of results that callers share: those of an older run replace a newer one's. */
  "an older result that replaces a newer one": () =>
    patchAll(rememberLua, "elseif newest > token then", "elseif false then"),

  /** Of results that callers share: only callers that have waited get them. */
  "a result that ends with its run": () =>
    patchAll(rememberLua, "local isFor = rest > 0 or found", "local isFor = found"),

  /** Of a quorum: half of the nodes, one of three or two of five, decide like a majority. */
  "half is enough"() {
    Object.defineProperty(Quorum.prototype, "majority", {
      get(this: Quorum) {
        return Math.floor(this.nodes.length / 2);
      },
    });
  },

  /** Of a quorum: a node votes as soon as it is up, whatever it has forgotten. */
  "young nodes vote"() {
    Object.defineProperty(QuorumNode.prototype, "quarantine", { get: () => 0 });
  },
};

export type Plant = keyof typeof plants;

/** ms. */
const OLD = 8_000;
const TIME_TOKEN = "local token = math.max(before + 1, now, 1000000000000000)";
const COMMON_WAY = "#text == 16";
const scripts = Object.keys(handoffLua) as (keyof typeof handoffLua)[];

function patch(script: keyof typeof handoffLua, sound: string, ill: string): void {
  patchAll(handoffLua, sound, ill, [script]);
}

/** In these scripts, or in all that have it. */
function patchAll(
  lua: Readonly<Record<string, Script>>,
  sound: string,
  ill: string,
  only = Object.keys(lua),
): void {
  const known = only.flatMap((script) => lua[script] ?? []).filter((script) => script.lua.includes(sound));
  if (known.length === 0) throw new Error(`The scripts have changed: "${sound}" is not there to be replaced`);
  for (const script of known as { lua: string; sha: string }[]) {
    script.lua = script.lua.replaceAll(sound, () => ill);
    script.sha = createHash("sha1").update(script.lua).digest("hex");
  }
}

interface Script {
  readonly lua: string;
}

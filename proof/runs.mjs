// The searches of run.mjs: what must hold, and what must be found when a rule is left out.

/** Kinds of faults (CAN_… in the model). */
const KINDS = {
  BREAK: "connection breaks",
  KEEP: "a late copy",
  TIME_OUT: "a time-out",
  DENY: "a refused write",
  CRASH: "a crash",
  MISS: "messages lost",
  APART: "a subscriber not counted",
  STEP: "the clock steps back",
  FORCE: "a forced release",
};
const FAULTS = Object.keys(KINDS);
const can = (...kinds) => `-DFAULTS=1 ${kinds.map((kind) => `-DCAN_${kind}`).join(" ")}`;
const two = "-DTURNS=2 -DDELAYS=2";
const three = "-DTURNS=3";

/** Of the hand-off: what must hold. In the short version with smaller bounds; null: not in it. */
const HANDOFF_HOLDS = [
  [
    "two clients, extensions, aborts",
    `${two} -DABORTS=1 -DEXTENDS=1`,
    "-DTURNS=2 -DDELAYS=1 -DABORTS=1 -DEXTENDS=1",
  ],
  ...FAULTS.map((kind) => [`two clients, ${KINDS[kind]}`, `${two} ${can(kind)}`, null]),
  ["two clients, any fault", null, `-DTURNS=2 -DDELAYS=0 ${can(...FAULTS)}`],
  ["three clients", `${three} -DDELAYS=1`, `${three} -DDELAYS=1 -DROUNDS=1`],
  ["three clients, connection breaks", `${three} -DDELAYS=0 -DROUNDS=1 ${can("BREAK", "TIME_OUT")}`, null],
  ["three clients, a break and delays", `${three} -DPLAIN -DROUNDS=1 -DDELAYS=2 ${can("BREAK")}`, null],
  ["three clients, messages lost, crash", `${three} -DDELAYS=0 -DROUNDS=1 ${can("MISS", "CRASH")}`, null],
  [
    "tokens, two clients",
    `${two} -DTOKENS ${can("BREAK", "FORCE")}`,
    `-DTURNS=2 -DDELAYS=0 -DTOKENS ${can("BREAK", "FORCE")}`,
  ],
  ["tokens, three clients", `${three} -DDELAYS=1 -DROUNDS=1 -DTOKENS`, null],
  [
    "fair: two places in one client",
    `${three} -DFAIR -DROUNDS=1 -DDELAYS=1`,
    `${three} -DFAIR -DROUNDS=1 -DDELAYS=0`,
  ],
  ["fair, messages lost, crash", `${three} -DFAIR -DROUNDS=1 -DDELAYS=0 ${can("MISS", "CRASH")}`, null],
  [
    "no lost waiter: two clients, any fault",
    `-DTURNS=2 -DCALM -DBOUND=3 -DDELAYS=1 ${can(...FAULTS, "FREEZE")}`,
    `-DTURNS=2 -DCALM -DBOUND=3 -DDELAYS=0 ${can(...FAULTS, "FREEZE")}`,
  ],
  ["no lost waiter: three clients", `${three} -DCALM -DBOUND=3 -DDELAYS=1 -DROUNDS=1`, null],
  [
    "no lost waiter: fair",
    `${three} -DFAIR -DCALM -DBOUND=5 -DDELAYS=0 -DROUNDS=1 ${can("MISS", "CRASH")}`,
    null,
  ],
  [
    "waiting, no fault: no tick",
    `${three} -DURGENT -DABORTS=1 -DBOUND=0`,
    `${three} -DURGENT -DABORTS=1 -DBOUND=0`,
  ],
  [
    "waiting, connection breaks: no tick",
    `${three} -DURGENT -DBOUND=0 ${can("BREAK", "TIME_OUT", "DENY")}`,
    `${three} -DURGENT -DBOUND=0 ${can("BREAK", "TIME_OUT", "DENY")}`,
  ],
  [
    "waiting, messages lost: a re-check",
    `${three} -DURGENT -DTURN_KEPT -DBOUND=1 ${can("MISS")}`,
    `${three} -DURGENT -DTURN_KEPT -DBOUND=1 ${can("MISS")}`,
  ],
  [
    "waiting, any one fault: a lease",
    `${three} -DURGENT -DBOUND=3 ${can(...FAULTS, "FREEZE")}`,
    `${three} -DROUNDS=1 -DURGENT -DBOUND=3 ${can(...FAULTS, "FREEZE")}`,
  ],
  [
    "waiting, fair: a lease and a window",
    `${three} -DFAIR -DROUNDS=1 -DURGENT -DBOUND=5 ${can("BREAK", "MISS", "CRASH", "FREEZE")}`,
    null,
  ],
];

/** One rule is left out: what must be found. All of them are in the short version. */
const HANDOFF_FINDS = [
  ["HOLD_REUSED", two],
  ["MINE_NOT_RAISED", two],
  ["RENEW_SHORTENS", `${two} -DEXTENDS=1`],
  ["T_MOVED", two],
  ["DEADLINE_FROM_RECEIPT", two],
  ["PUBLISH_FIRST", `${two} ${can("DENY")}`],
  ["TOKENS_NOT_RESERVED", `${two} -DTOKENS`],
  ["NO_LEAVE", `${two} ${can("TIME_OUT")}`],
  ["RECHECK_LONG", `-DTURNS=2 -DURGENT -DTURN_KEPT ${can("MISS")}`],
  ["NO_RECHECK", `-DTURNS=2 -DURGENT ${can("MISS")}`],
  ["QUEUES_UNHEARD", "-DTURNS=2 -DURGENT -DBOUND=0"],
  ["NO_NOT_AFTER", `${two} ${can("KEEP")}`],
  ["AGAIN_QUEUES", `${two} -DFLAW_CLAIM_AFTER_DEADLINE`],
  ["ONE_RECEIPT", `${two} -DTOKENS ${can("BREAK")}`],
  ["CLAIM_AFTER_DEADLINE", `${two} ${can("BREAK")}`],
  ["STALE_FORGOTTEN", `${two} -DREPLY=1 ${can("BREAK")}`],
  ["CLAIM_FORGOTTEN", `${three} -DPLAIN -DROUNDS=1 -DDELAYS=2 ${can("BREAK")}`],
  ["LATE_RENEWAL_COUNTS", `${two} ${can("KEEP")}`],
  ["PUBLISH_THEN_SKIP", `${two} ${can("APART")}`],
];

const APART = "-DAPART -DRIVAL";
const QUICKLY = "-DPROMPT -DRIVAL";
const FORGET = "-DCAN_FORGET";
const ANY = "-DCAN_FORGET -DCAN_RESTART -DCAN_HANG -DCAN_CUT";
/** Of the quorum: what must hold. */
const QUORUM_HOLDS = [
  ["quorum: nodes fail apart", `${APART} -DPROMPT -DKEPT ${ANY}`, `${APART} -DPROMPT -DKEPT ${FORGET}`],
  ["quorum: three losses of data, apart", `${APART} -DPROMPT -DKEPT -DFAULTS=3 ${FORGET}`, null],
  ["quorum: nodes fail apart, slow votes", `${APART} -DKEPT ${FORGET}`, null],
  ["quorum: nodes fail apart, both renew", `-DAPART -DPROMPT -DKEPT -DFAULTS=1 ${ANY}`, null],
  ["quorum: a loss at any time is learned", `${QUICKLY} ${FORGET}`, `${QUICKLY} -DFAULTS=1 ${FORGET}`],
  ["quorum: the same, slow votes", `-DRIVAL -DFAULTS=1 ${FORGET}`, null],
  ["quorum: the same, a lost answer", `${QUICKLY} ${FORGET} -DCAN_LOSE`, null],
  [
    "quorum: restarts at any time",
    `${QUICKLY} -DEXCLUSION -DCAN_RESTART`,
    `${QUICKLY} -DEXCLUSION -DFAULTS=1 -DCAN_RESTART`,
  ],
];

/** One rule of the quorum is left out. The first: two holders, and a lease that is lost. */
const QUORUM_FINDS = [
  ["NO_REJOIN", `${APART} -DPROMPT ${FORGET}`],
  ["NO_REJOIN", `${APART} -DPROMPT -DKEPT -DCAN_RESTART`],
  ["LATE_NODE_COUNTS", `${QUICKLY} -DFAULTS=1 ${FORGET}`],
  ["STALE_CONFIRMS", `${QUICKLY} ${FORGET}`],
  ["REJOIN_ALWAYS", `${QUICKLY} ${FORGET}`],
  ["LATE_VOTE_COUNTS", `-DRIVAL -DFAULTS=1 ${FORGET}`],
  ["SLOW_VOTES_COUNT", `${APART} ${FORGET}`],
  ["YOUNG_VOTES", `${QUICKLY} -DEXCLUSION -DFAULTS=1 -DCAN_RESTART`],
];

const holds = (model, list) =>
  list.map(([name, full, quick]) => ({ model, name, full, quick, expected: "holds" }));
const finds = (model, list, prefix = "") =>
  list.map(([rule, flags]) => {
    const found = `${flags} -DFLAW_${rule}`;
    return { model, name: `${prefix}without a rule: ${rule}`, full: found, quick: found, expected: "found" };
  });

/** `model`: a file. `full`, `quick`: the flags of both versions; null: not in that one. */
export const RUNS = [
  ...holds("handoff.pml", HANDOFF_HOLDS),
  ...holds("quorum.pml", QUORUM_HOLDS),
  ...finds("handoff.pml", HANDOFF_FINDS),
  ...finds("quorum.pml", QUORUM_FINDS, "quorum: "),
];

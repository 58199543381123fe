// The searches of run.mjs: what must hold, and what must be found when a rule is left out.

/** Kinds of faults (CAN_… in the model). */
const KINDS = {
  BREAK: "connection breaks",
  KEEP: "a late copy",
  REPEAT: "sent again behind others",
  TIME_OUT: "a time-out",
  DENY: "a refused write",
  FULL: "Redis is full",
  CRASH: "a crash",
  MISS: "messages lost",
  HANG: "SUBSCRIBE hangs",
  APART: "a subscriber not counted",
  STEP: "the clock steps back",
  FORCE: "a forced release",
};
const FAULTS = Object.keys(KINDS);
const can = (...kinds) => `-DFAULTS=1 ${kinds.map((kind) => `-DCAN_${kind}`).join(" ")}`;
const two = "-DQUEUES=2 -DDELAYS=2";
const short = "-DQUEUES=2 -DDELAYS=0";
const three = "-DQUEUES=3";
const one = "-DQUEUES=3 -DROUNDS=1";
const urgent = "-DQUEUES=2 -DURGENT";
const calm = "-DQUEUES=2 -DROUNDS=1 -DCALM -DBOUND=3 -DDELAYS=0";
const places = "-DLONG_HOLDS -DPLACE_KEPT";
const grants = `${one} -DLONG_HOLDS -DGRANT_KEPT -DFAR`;

/** Of the hand-off: what must hold. In the short version with smaller bounds; null: not in it. */
const HANDOFF_HOLDS = [
  ["two clients, extensions, aborts", `${two} -DABORTS=1 -DEXTENDS=1`, `${short} -DABORTS=1 -DEXTENDS=1`],
  ...FAULTS.map((kind) => [`two clients, ${KINDS[kind]}`, `${two} ${can(kind)}`, null]),
  ["two clients, any fault", null, `${short} ${can(...FAULTS)}`],
  [
    "two clients, callers that would not wait",
    `${two} -DUNHEARD -DTRIES=2 -DABORTS=1`,
    `${short} -DROUNDS=1 -DUNHEARD -DTRIES=2 -DABORTS=1`,
  ],
  ["two clients, queued unheard, a late copy", `${short} -DUNHEARD ${can("KEEP")}`, null],
  ["three clients", `${three} -DDELAYS=1`, `${one} -DDELAYS=0`],
  ["three clients, connection breaks", `${one} -DDELAYS=0 ${can("BREAK", "TIME_OUT")}`, null],
  ["three clients, a break and delays", `${one} -DPLAIN -DDELAYS=2 ${can("BREAK")}`, null],
  ["three clients, sent again behind others", `${one} -DPLAIN -DDELAYS=1 ${can("REPEAT")}`, null],
  ["three clients, messages lost, crash", `${one} -DDELAYS=0 ${can("MISS", "CRASH")}`, null],
  ["three clients, the clock steps back", `${one} -DPLAIN -DDELAYS=1 ${can("STEP")}`, null],
  [
    "tokens, two clients",
    `${two} -DTOKENS ${can("BREAK", "FORCE")}`,
    `${short} -DTOKENS ${can("BREAK", "FORCE")}`,
  ],
  ["tokens, sent again behind others", `-DQUEUES=2 -DDELAYS=1 -DTOKENS ${can("REPEAT")}`, null],
  ["tokens, three clients", `${one} -DDELAYS=1 -DTOKENS`, null],
  ["fair: two places in one client", `${one} -DFAIR -DDELAYS=1`, `${one} -DFAIR -DDELAYS=0`],
  ["fair, messages lost, crash", `${one} -DFAIR -DDELAYS=0 ${can("MISS", "CRASH")}`, null],
  [
    "no lost waiter: two clients, any fault",
    `-DQUEUES=2 -DCALM -DBOUND=3 -DDELAYS=1 ${can(...FAULTS, "FREEZE")}`,
    `${calm} ${can(...FAULTS, "FREEZE")}`,
  ],
  ["no lost waiter: three clients", `${one} -DCALM -DBOUND=3 -DDELAYS=1`, null],
  ["no lost waiter: fair", `${one} -DFAIR -DCALM -DBOUND=5 -DDELAYS=0 ${can("MISS", "CRASH")}`, null],
  [
    "waiting, no fault: no tick",
    `${three} -DURGENT -DUNHEARD -DABORTS=1 -DBOUND=0`,
    `${three} -DURGENT -DUNHEARD -DABORTS=1 -DBOUND=0`,
  ],
  [
    "waiting, connection breaks: no tick",
    `${three} -DURGENT -DBOUND=0 ${can("BREAK", "REPEAT", "TIME_OUT", "DENY")}`,
    `${one} -DURGENT -DBOUND=0 ${can("BREAK", "REPEAT", "TIME_OUT", "DENY")}`,
  ],
  [
    "waiting, a waiter crashes: no tick",
    `${three} -DURGENT -DUNHEARD -DBOUND=0 ${can("CRASH_WAITING")}`,
    `${one} -DURGENT -DUNHEARD -DBOUND=0 ${can("CRASH_WAITING")}`,
  ],
  [
    "waiting, messages lost: a re-check",
    `${three} -DURGENT -DGRANT_KEPT -DBOUND=1 ${can("MISS")}`,
    `${one} -DURGENT -DGRANT_KEPT -DBOUND=1 ${can("MISS")}`,
  ],
  [
    "waiting, SUBSCRIBE hangs: two re-checks",
    `${three} -DURGENT -DGRANT_KEPT -DBOUND=2 ${can("HANG")}`,
    `${urgent} -DGRANT_KEPT -DBOUND=2 ${can("HANG")}`,
  ],
  [
    "waiting, any one fault: a lease",
    `${three} -DURGENT -DBOUND=3 ${can(...FAULTS, "FREEZE")}`,
    `${one} -DURGENT -DBOUND=3 ${can(...FAULTS, "FREEZE")}`,
  ],
  [
    "waiting, fair: a lease and a window",
    `${one} -DFAIR -DURGENT -DBOUND=5 ${can("BREAK", "MISS", "CRASH", "FREEZE")}`,
    null,
  ],
  ["places kept, far ones", `${three} ${places} -DPLAIN -DFAR`, `${one} ${places} -DPLAIN -DFAR`],
  ["places kept, queued unheard", `${three} ${places} -DUNHEARD`, null],
  [
    "places kept, SUBSCRIBE hangs",
    `-DQUEUES=2 ${places} ${can("HANG")}`,
    `-DQUEUES=2 ${places} ${can("HANG")}`,
  ],
  ["places kept, sent again behind others", `${urgent} -DPLACE_KEPT -DBOUND=0 ${can("REPEAT")}`, null],
  ["grants kept, far places, a reconnect", `${grants} -DPLAIN ${can("RECONNECT")}`, null],
  ["grants kept, far places, unheard", `${grants} ${can("HANG", "HANG_AT_FIRST")}`, null],
  ["silent clients get nothing", `-DQUEUES=2 -DLONG_HOLDS -DSILENCE ${can("FREEZE")}`, null],
];

/**
 * One rule is left out: what must be found. All of them are in the short version. Rules whose loss the
 * world finds in the real code are not here, but where a property has no other one.
 */
const HANDOFF_FINDS = [
  ["HOLD_REUSED", two],
  ["MINE_NOT_RAISED", two],
  ["RENEW_SHORTENS", `${two} -DEXTENDS=1`],
  ["T_MOVED", two],
  ["PUBLISH_FIRST", `${two} ${can("DENY")}`],
  ["POP_FIRST", `${short} ${can("FULL")}`],
  ["YIELD_QUEUES_FIRST", `${short} ${can("FULL")}`],
  ["TOKENS_AS_TEXT", `${short} -DTOKENS`],
  ["TICKET_BEHIND", `${short} ${can("STEP")}`],
  ["RECHECK_LONG", `${urgent} -DGRANT_KEPT ${can("MISS")}`],
  ["NO_RECHECK", `${calm} ${can("MISS")}`],
  ["QUEUES_UNHEARD", `${urgent} -DPLACE_KEPT -DBOUND=0`],
  ["UNHEARD_SKIPPED", `-DQUEUES=2 ${places} ${can("HANG")}`],
  ["OLD_WORD_COUNTS", `-DQUEUES=2 ${places} ${can("HANG")}`],
  ["UNCOUNTED_FOR_EVER", `${one} -DURGENT -DUNHEARD -DBOUND=0 ${can("CRASH_WAITING")}`],
  ["UNHEARD_LOOKS_LATE", `${grants} ${can("HANG", "HANG_AT_FIRST")}`],
  ["FIRST_LOOK_LATE", `${one} ${places} -DPLAIN -DFAR`],
  ["QUEUE_ENDS_EARLY", `${one} ${places} -DPLAIN -DFAR`],
  ["KEPT_FOR_LONG", `-DQUEUES=2 -DLONG_HOLDS -DSILENCE ${can("FREEZE")}`],
  ["MEMBER_CHANGES", `${urgent} -DROUNDS=1 -DUNHEARD ${can("KEEP")}`],
  ["AGAIN_EARLY", `${urgent} -DPLACE_KEPT -DBOUND=0 ${can("REPEAT")}`],
  ["BUSY_BEFORE_IT_CAME", `${short} -DROUNDS=1 -DTRIES=1`],
  ["NO_NOT_AFTER", `${two} ${can("KEEP")}`],
  ["AGAIN_QUEUES", `${two} -DFLAW_CLAIM_AFTER_DEADLINE`],
  ["ONE_RECEIPT", `${two} -DTOKENS ${can("BREAK")}`],
  ["CLAIM_AFTER_DEADLINE", `${two} -DROUNDS=1 ${can("BREAK")}`],
  ["CLAIM_FORGOTTEN", `-DQUEUES=2 -DDELAYS=1 ${can("REPEAT")}`],
  ["LATE_RENEWAL_COUNTS", `${two} -DROUNDS=1 ${can("KEEP")}`],
  ["PUBLISH_THEN_SKIP", `${two} ${can("APART")}`],
];

const stay = "-DSTAYS -DQUEUES=2 -DMEMORY -DENDLESS=1";
/** Their times are as far apart as they may be, or everybody acts at once. */
const slowly = (delays) => `${stay} -DROUNDS=1 -DDELAYS=${delays}`;
const stays = `${stay} -DURGENT`;
const threeStays = "-DSTAYS -DQUEUES=3 -DMEMORY -DENDLESS=1 -DROUNDS=1 -DURGENT";
/** Every hold with reserved tokens, or only those that the queue has granted. */
const reserved = "-DSTAYS -DQUEUES=2 -DENDLESS=1 -DROUNDS=1 -DURGENT -DTOKENS";
const stayTokens = `${reserved} -DRESERVES_IF_LIKELY`;
const parked = "-DFAULTS=2 -DCAN_CRASH_WAITING -DCAN_DROP";
const always = (name, flags) => [name, flags, flags];
/** Of stays: what must hold. */
const STAY_HOLDS = [
  ["no fault", slowly(1), slowly(0)],
  ["claimed at any time", `${slowly(1)} -DCLAIMS`, null],
  ["a crash", `${slowly(1)} ${can("CRASH")}`, null],
  ["a message lost", `${slowly(1)} ${can("DROP")}`, null],
  ["three clients", "-DSTAYS -DQUEUES=3 -DMEMORY -DROUNDS=1 -DDELAYS=0 -DKEEPERS=2", null],
  always("explicit leases", `${slowly(0)} -DFRESH=2 -DTERMS`),
  ["anybody publishes", `${slowly(0)} ${can("FORGE")}`, `${stays} -DROUNDS=1 -DBOUND=0 ${can("FORGE")}`],
  ["the lock is deleted", `${slowly(0)} ${can("LOSE")}`, `${stays} -DROUNDS=1 -DBOUND=2 ${can("LOSE")}`],
  always("tokens", `${stayTokens} -DCLOCKS=19`),
  ["tokens, always reserved", `${reserved} -DCLOCKS=19`, null],
  ["tokens, connection breaks", `${stayTokens} ${can("BREAK")}`, null],
  ["tokens, the clock steps", `${stayTokens} ${can("CLOCK")}`, null],
  ["tokens, all data are lost", `${stayTokens} -DCLOCKS=19 ${can("LOSE")}`, null],
  always("waiting: no tick", `${stays} -DBOUND=0`),
  ["waiting, both keep: no tick", `${stays} -DKEEPERS=2 -DBOUND=0`, null],
  always("waiting, three clients: no tick", `${threeStays} -DBOUND=0`),
  always("waiting, a reconnect: no tick", `${stays} -DPLAIN -DBOUND=0 ${can("RECONNECT")}`),
  ["waiting, connection breaks: no tick", `${stays} -DBOUND=0 ${can("BREAK", "TIME_OUT", "DENY")}`, null],
  always("waiting, no recalls: a tick", `${stays} -DMUTE -DCLAIMS -DBOUND=1`),
  ["waiting, no recalls, long windows: a tick", `${stays} -DMUTE -DWINDOW=4 -DLEASE=5 -DBOUND=1`, null],
  always("waiting, no recalls, no linger, bodies", `${stays} -DMUTE -DCLAIMS -DKEEPERS=0 -DBODY=1 -DBOUND=2`),
  always("waiting, a message lost: a tick", `${stays} -DBOUND=1 ${can("DROP")}`),
  ["waiting, messages lost: a tick", `${stays} -DBOUND=1 ${can("MISS")}`, null],
  [
    "waiting, a message lost, renewals are silent",
    `${stays} -DBOUND=2 -DFLAW_RENEWALS_SAY_NOTHING ${can("DROP")}`,
    null,
  ],
  ["waiting, a message lost, no reminders", `${stays} -DBOUND=2 -DFLAW_NO_REMIND ${can("DROP")}`, null],
  ["waiting, a subscriber not counted: a window", `${stays} -DBOUND=2 ${can("APART")}`, null],
  always("waiting, an idle keeper crashes: a window", `${stays} -DCLAIMS -DBOUND=2 ${can("CRASH_KEPT")}`),
  [
    "waiting, crash, freeze: a lease",
    `${stays} -DBOUND=3 ${can("CRASH", "FREEZE")}`,
    `${stays} -DROUNDS=1 -DBOUND=3 ${can("CRASH")}`,
  ],
  ["waiting, the head crashes unheard: two ticks", `${threeStays} -DBOUND=2 ${parked}`, null],
];

/** One rule of the stays is left out. */
const STAY_FINDS = [
  ["TAKEN_FROM_THE_DEAF", `${slowly(0)} ${can("APART")}`],
  ["IDLE_FLAG", slowly(0)],
  ["LAPSE", `-DSTAYS -DQUEUES=2 -DENDLESS=1 -DROUNDS=1 -DDELAYS=1 -DFLAW_NO_FRESHNESS`],
  ["RENEWED_FROM_RECEIPT", slowly(1)],
  ["GRANT_SAYS_NOTHING", `${threeStays} -DKEEPERS=3 -DGRANTS_TELL -DBOUND=0`],
  ["NO_REMIND", `${stays} -DFLAW_RENEWALS_SAY_NOTHING -DBOUND=2 ${can("DROP")}`],
  ["RENEWALS_SAY_NOTHING", `${stays} -DMUTE -DCLAIMS -DBOUND=5`],
  ["RENEWALS_SAY_NOTHING", `${stays} -DMUTE -DCLAIMS -DKEEPERS=0 -DBODY=1 -DBOUND=6`],
  ["RENEWALS_SAY_NOTHING", `${threeStays} -DBOUND=2 ${parked}`],
  ["NO_FRESHNESS", `-DSTAYS -DQUEUES=2 -DENDLESS=1 -DURGENT -DMUTE -DWINDOW=4 -DLEASE=5 -DBOUND=3`],
  ["NO_FRESHNESS", `${slowly(0)} ${can("LOSE")}`],
  ["FRESH_FROM_RECEIPT", slowly(1)],
  ["RECALL_NAMES_THE_ASKER", `${slowly(0)} ${can("FORGE")}`],
  ["RECALLED_IS_LEFT", `${slowly(0)} ${can("FORGE")}`],
  ["ALL_COME_BACK", `${stays} -DCLAIMS -DBOUND=2 ${can("CRASH_KEPT")}`],
  ["CLAIMED_IS_KEPT", `${stays} -DCLAIMS -DBOUND=2 ${can("CRASH_KEPT")}`],
  ["KNOWN_COUNTS", `${stays} -DCLAIMS -DBOUND=2 ${can("CRASH_KEPT")}`],
  ["LOSS_IS_DROPPED", `${slowly(0)} ${can("LOSE")}`],
  ["ENOUGH_FOR_ANYBODY", `${slowly(0)} -DFRESH=2 -DTERMS`],
  ["ASKS_FOR_EVER", `${stayTokens} ${can("CLOCK")}`],
  ["TOKENS_BY_OWN_CLOCK", `${stayTokens} -DCLOCKS=19 ${can("LOSE")}`],
  ["CLOCK_NOT_RAISED", `${stayTokens} -DCLOCKS=19 ${can("CLOCK")}`],
  ["AHEAD_IS_NOT_SEEN", `${reserved} -DCLOCKS=19`],
  ["TOLD_ONCE_IS_ENOUGH", `${stays} -DPLAIN -DBOUND=0 ${can("RECONNECT")}`],
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

/** Counted resources. */
const rw = "-DREAD_WRITE";
const shared = `${rw} -DCLIENTS=2 -DC1=2`;
const permits = "-DPERMITS=2 -DW0=1";
const pooled = "-DPERMITS=3 -DW0=2 -DU1=2 -DC1=2";
const ANY_CRASH = can("CRASH", "FREEZE", "MISS");
const passed = "-DCLIENTS=2 -DPERMITS=3 -DW0=2 -DU1=2 -DPASSED=1";
const yields = `${rw} -DTOKENS -DC0=2 -DYIELDS=1`;
const numbers = `${permits} -DN0=1 -DN1=1`;
const sits = `${permits} -DURGENT -DRENEWS -DBOUND=5 ${can("CRASH")}`;
const kept = `${shared} -DLINGERS`;
const wanted = `${kept} -DURGENT`;
const tries = `${rw} -DW2=PERMITS -DTRIES=2 -DC1=2 -DC2=2 -DLINGERS -DURGENT -DBOUND=0`;
const copied = `${rw} -DCLIENTS=2 -DTOKENS -DDOWNS=1 -DFAULTS=2 -DCOPIES=2 -DCAN_KEEP`;
const downs = `${copied} -DC1=2`;
const COUNTED_HOLDS = [
  ["kept reads: late messages, callers that leave", `${kept} -DTOKENS -DDELAYS=1 -DABORTS=1`, null],
  ["kept reads: two keepers", `${rw} -DLINGERS`, null],
  ["kept reads: a crash, a freeze, a lost recall", `${kept} -DDELAYS=1 ${ANY_CRASH}`, `${kept} ${ANY_CRASH}`],
  ["kept reads: a late copy, a time-out", `${kept} -DDELAYS=1 ${can("KEEP", "TIME_OUT")}`, null],
  ["kept reads: waiting, no fault: no tick", `${rw} -DLINGERS -DURGENT -DBOUND=0`, `${wanted} -DBOUND=0`],
  ["kept reads: waiting beside a writer that does not", tries, tries],
  ["kept reads: waiting, a recall lost: a re-check", `${wanted} -DBOUND=1 ${can("MISS")}`, null],
  [
    "kept reads: waiting for one that hears nothing: a window",
    `${wanted} -DDEAF=1 -DBOUND=2`,
    `${wanted} -DDEAF=1 -DBOUND=2`,
  ],
  [
    "kept reads: waiting, a crash, a freeze: a window and a tick",
    `${rw} -DLINGERS -DURGENT -DBOUND=3 -DPLAIN ${can("CRASH", "FREEZE")}`,
    null,
  ],
  ["counted: readers share, renewals", `${shared} -DTOKENS -DDELAYS=1 -DRENEWS -DABORTS=1`, null],
  ["counted: phases and downgrade", `${rw} -DTOKENS -DC1=2 -DDOWNS=1`, `${rw} -DTOKENS -DDOWNS=1 -DABORTS=1`],
  ["counted: downgrade, two late copies", downs, null],
  ["counted: downgrade after a local hand-off, two late copies", `${copied} -DC0=2`, null],
  ["counted: read-write, a crash or a freeze", `${rw} ${ANY_CRASH}`, null],
  ["counted: readers share, a crash or a freeze", `${shared} -DDELAYS=1 ${ANY_CRASH}`, null],
  ["counted: readers share, a late copy", `${shared} -DDELAYS=1 ${can("KEEP")}`, `${shared} ${can("KEEP")}`],
  ["counted: read-write, a late copy, a time-out", `${rw} ${can("KEEP", "TIME_OUT")}`, null],
  ["counted: a writer yields", `${yields} -DABORTS=1`, null],
  [
    "counted: a writer yields, a late copy, a time-out",
    `${yields} -DCLIENTS=2 ${can("KEEP", "TIME_OUT")}`,
    null,
  ],
  ["counted: full Redis, a key of another type", `${rw} -DCLIENTS=2 -DRENEWS ${can("FULL", "TYPE")}`, null],
  ["counted: a longer lease", `${shared} -DLONG=6 -DRENEWS`, null],
  ["counted: permits of one process", "-DCLIENTS=2 -DPERMITS=2 -DU1=2 -DC1=2 -DC0=2 -DDELAYS=1", null],
  ["counted: permits, a late copy", `-DCLIENTS=2 -DPERMITS=3 -DW0=1 -DU1=3 -DC1=3 ${can("KEEP")}`, null],
  ["counted: permits are passed", `${passed} -DC1=3 -DDELAYS=1 -DABORTS=1`, `${passed} -DC1=3 -DTOKENS`],
  ["counted: permits are passed, tokens", `${passed} -DC1=3 -DC0=2 -DTOKENS`, null],
  ["counted: permits are passed, a crash or a freeze", `${passed} -DC1=3 ${ANY_CRASH}`, null],
  [
    "counted: permits are passed, a late copy, a time-out",
    `${passed} -DC1=3 ${can("KEEP", "TIME_OUT")}`,
    null,
  ],
  ["counted: two numbers of permits", `${numbers} -DKEY_ENDS -DFAULTS=2 -DCAN_CRASH -DCAN_VANISH`, null],
  ["counted: setPermits", `${permits} -DSETS=1 -DKEY_ENDS ${can("CRASH")}`, null],
  [
    "counted: waiting, no fault: no tick",
    `${rw} -DC1=2 -DURGENT -DABORTS=1 -DBOUND=0`,
    `${rw} -DC1=2 -DURGENT -DABORTS=1 -DBOUND=0`,
  ],
  ["counted: waiting, messages lost: a re-check", `${rw} -DC1=2 -DURGENT -DBOUND=1 ${can("MISS")}`, null],
  [
    "counted: waiting, a crash: a lease and a tick",
    `${rw} -DC1=2 -DURGENT -DBOUND=4 ${can("CRASH", "FREEZE")}`,
    `${rw} -DURGENT -DBOUND=4 ${can("CRASH")}`,
  ],
  ["counted: waiting for permits, the same", `${pooled} -DURGENT -DBOUND=4 ${ANY_CRASH}`, null],
  [
    "counted: waiting, wrong books: a scan",
    `${shared} -DURGENT -DBOUND=3 ${can("DRIFT")}`,
    `${shared} -DURGENT -DBOUND=3 ${can("DRIFT")}`,
  ],
  ["counted: waiting beside one that stays", `${sits} -DSITS=1 -DLONG=9 -DSCAN=9`, null],
];

/** Of the rules of stays and counted resources: those whose loss the short version finds too. */
const QUICK = [
  "NO_FRESHNESS",
  "RECALL_NAMES_THE_ASKER",
  "CLAIMED_IS_KEPT",
  "LOSS_IS_DROPPED",
  "CLOCK_NOT_RAISED",
  "KEPT_THOUGH_WANTED",
  "TRIED_IS_KEPT",
  "KEPT_NOT_FRESH",
  "REAP_TELLS_NOBODY",
  "RUN_ENDS_AT_ME",
  "READERS_OVERTAKE",
  "SHARES_FOR_EVER",
  "JOIN_IS_NO_USER",
  "SET_FADES",
  "DOWNGRADE_OLD_TOKEN",
  "MORE_USERS_THAN_UNITS",
  "PASSED_FOR_LONG",
  "PERMIT_TOKENS_NOT_RESERVED",
  "NO_LEAVE",
  "NO_RECOUNT",
];
/** One rule is left out. Where two are, either is enough. */
const COUNTED_FINDS = [
  ["KEPT_THOUGH_WANTED", `${wanted} -DBOUND=0`],
  ["NO_RECALL", `${wanted} -DBOUND=0`],
  ["TRIED_IS_KEPT", tries],
  ["TRIED_EARLY", tries],
  ["KEPT_NOT_FRESH", `${kept} ${can("FREEZE")}`],
  ["KEPT_BEHIND_DEADLINE", `${kept} -DDEAF=1`],
  ["KEPT_IS_RENEWED", `${wanted} -DDEAF=1 -DBOUND=2`],
  ["YIELD_QUEUES", `${yields} -DCLIENTS=2 ${can("KEEP")}`],
  ["REAP_TELLS_NOBODY", `${numbers} ${can("CRASH")}`],
  ["RUN_ENDS_AT_ME", `${rw} ${can("CRASH")}`],
  ["ONE_AT_A_TIME", rw],
  ["LEAVE_TELLS_NOBODY", `${rw} -DABORTS=1`],
  ["DEAD_HEAD_BLOCKS", `${rw} ${can("CRASH")}`],
  ["RELEASE_BEFORE_REAP", `-DPERMITS=3 -DW0=1 -DDELAYS=1 ${can("FREEZE")} -DFLAW_NO_RECOUNT`],
  ["COPY_GROWS", `-DCLIENTS=2 -DPERMITS=3 -DW0=1 -DU1=3 -DC1=3 ${can("KEEP")}`],
  ["READERS_OVERTAKE", rw],
  ["MORE_USERS_THAN_UNITS", `${passed} -DC1=3`],
  ["PASSES_NOT_COUNTED", `${passed} -DC1=4 -DTOKENS`],
  ["PASSED_FOR_LONG", `${passed} -DC1=3`],
  ["PERMIT_TOKENS_NOT_RESERVED", `${passed} -DC1=3 -DTOKENS`],
  ["PASSED_BEHIND_DEADLINE", `${passed} -DC1=3 -DDELAYS=1 ${can("FREEZE")}`],
  ["KEY_SHORTENED", `${permits} -DRENEWS -DKEY_ENDS`],
  ["REVIVED", `${rw} -DCLIENTS=2 -DDELAYS=1 -DRENEWS ${can("FREEZE")}`],
  ["SHARES_FOR_EVER", shared],
  ["SHARE_FROM_RECEIPT", `${shared} -DDELAYS=1`],
  ["JOIN_IS_NO_USER", shared],
  ["JOIN_IS_ACQUIRE", `${shared} ${can("KEEP")}`],
  ["JOIN_TAKES_PLACE", `${shared} -DDELAYS=1 ${can("KEEP")}`],
  ["LATE_JOIN_COUNTS", `${shared} -DDELAYS=1 ${can("FREEZE")}`],
  ["JOINS_ANYTHING", `${shared} -DLONG=6`],
  ["ONE_END", `${sits} -DSITS=0`],
  ["NEXT_LATE", `${sits} -DSITS=1 -DLONG=9 -DSCAN=9`],
  ["HSET_FIRST", `${rw} -DCLIENTS=2 -DRENEWS ${can("FULL")}`],
  ["OLD_NUMBER", `${numbers} -DFAULTS=2 -DCAN_CRASH -DCAN_VANISH`],
  ["BOOKS_END", `${numbers} -DKEY_ENDS ${can("CRASH")} -DFLAW_OLD_NUMBER`],
  ["SET_FADES", `${permits} -DSETS=1 -DKEY_ENDS ${can("CRASH")}`],
  ["DOWNGRADE_OLD_TOKEN", `${rw} -DTOKENS -DC0=2 -DDOWNS=1`],
  ["DOWNGRADE_COPY_COUNTS", downs],
  ["PHASE_NEVER_ENDS", `${rw} -DTOKENS`],
  ["READERS_OWN_TOKENS", `${rw} -DTOKENS`],
  ["TOKENS_NOT_RESERVED", `${rw} -DTOKENS -DCLIENTS=2 -DC0=3`],
  ["NO_RECOUNT", `${shared} -DURGENT -DBOUND=3 ${can("DRIFT")}`],
  ["READS_LATE", `${rw} -DCLIENTS=2 ${can("TYPE")}`],
  ["NO_LEAVE", `${rw} -DCLIENTS=2 ${can("TIME_OUT")}`],
  ["NO_NOT_AFTER", `${rw} -DCLIENTS=2 ${can("KEEP")}`],
  ["MINE_NOT_RAISED", `${rw} -DCLIENTS=2`],
];

/** Results that are shared: two or three processes, a tick of delay. */
const again = "-DROUNDS=2 -DDELAYS=1";
const trio = "-DCLIENTS=3 -DDELAYS=0";
const brief = "-DREPLY=3 -DDELAYS=2 -DFORGETS=1";
const soon = "-DCLIENTS=3 -DROUNDS=2 -DURGENT";
const others = "-DFORGETS=1 -DTHROWS=1";
const REMEMBER_HOLDS = [
  ["two processes", `-DROUNDS=2 -DDELAYS=2 ${others}`, `${again} ${others}`],
  ["long keep", `${again} ${others} -DKEEP0=1 -DKEEP=4`, null],
  ["a late copy", `${again} ${others} ${can("KEEP")}`, `-DDELAYS=1 -DFORGETS=1 ${can("KEEP")}`],
  ["two late copies", `-DDELAYS=1 ${others} -DCOPIES=2 -DFAULTS=2 -DCAN_KEEP`, null],
  ["a late copy, a short lease", `${brief} ${can("KEEP")}`, null],
  [
    "a late copy, late results only where nobody runs",
    `${again} ${others} -DLATE_IF_FREE -DFLAW_COPY_ENDS_RUN ${can("KEEP")}`,
    null,
  ],
  [
    "any other fault",
    `${again} ${others} ${can("BREAK", "MISS", "CRASH", "FORCE")}`,
    `-DDELAYS=1 ${others} ${can("BREAK", "MISS", "CRASH", "FORCE")}`,
  ],
  ["two forced releases", `${again} -DFORGETS=1 -DFAULTS=2 -DCAN_FORCE`, null],
  ["second callers", `${again} ${others} -DJOINS=1`, `-DDELAYS=1 ${others} -DJOINS=1`],
  ["callers leave", `${again} ${others} -DJOINS=1 -DLEAVES=1`, `-DDELAYS=1 -DTHROWS=1 -DJOINS=1 -DLEAVES=1`],
  ["callers leave, a late copy", `-DDELAYS=1 -DTHROWS=1 -DJOINS=1 -DLEAVES=1 ${can("KEEP")}`, null],
  ["three processes", `${trio} -DROUNDS=2 ${others}`, `${trio} -DTHROWS=1`],
  ["three processes, a late copy", `-DCLIENTS=3 -DDELAYS=1 -DTHROWS=1 ${can("KEEP")}`, null],
  ["waiting, no fault: no tick", `${soon} ${others} -DBOUND=0`, `${soon} ${others} -DBOUND=0`],
  ["waiting, second callers: no tick", `${soon} ${others} -DJOINS=1 -DBOUND=0`, null],
  [
    "waiting, connection breaks: no tick",
    `${soon} ${others} -DBOUND=0 ${can("BREAK")}`,
    `${soon} -DBOUND=0 ${can("BREAK")}`,
  ],
  [
    "waiting, messages lost: a re-check",
    `${soon} ${others} -DBOUND=1 ${can("MISS")}`,
    `${soon} -DBOUND=1 ${can("MISS")}`,
  ],
  [
    "waiting, more than are told, a freeze: a lease",
    `${soon} -DCHUNK=0 -DBOUND=2 ${can("FREEZE", "MISS")}`,
    null,
  ],
  [
    "waiting, crash, freeze, forced release: a lease",
    `${soon} ${others} -DBOUND=2 ${can("CRASH", "FREEZE", "FORCE")}`,
    null,
  ],
];

/** One rule of them is left out. All are in the short version, but for the longest search. */
const REMEMBER_FINDS = [
  ["LATE_WITHOUT_LIMIT", `${again} -DFORGETS=1`],
  ["COPY_STORES", `${again} -DFORGETS=1 ${can("KEEP")}`],
  ["COPY_STORES", `${again} ${can("BREAK")}`],
  ["OLDER_REPLACES", again],
  ["KEEP_FOR_WAITERS", again],
  ["ENDS_WITH_KEEP", again],
  ["LAST_ENDS_EARLY", `${again} -DFORGETS=1 ${can("FORCE")}`],
  ["LATE_LEAVES_LAST", `${again} -DFORGETS=1 ${can("KEEP")}`],
  ["LATE_PROOF_COUNTS", `${brief} ${can("KEEP")}`],
  ["FINISH_BY_HOLD", `${brief} ${can("KEEP")}`],
  ["COPY_ENDS_RUN", `${again} ${can("KEEP")}`],
  ["GRANT_RUNS", again],
  ["KEPT_HOLDS", `${soon} -DCHUNK=0 -DBOUND=0`],
  ["SEEN_BY_PLACE", `${again} -DJOINS=1`],
  ["NAMES_ANOTHER_RUN", `-DCLIENTS=3 -DDELAYS=1 -DTHROWS=1 -DJOINS=1 -DLEAVES=1 ${can("KEEP")}`],
  ["LATER_CALLERS_TOO", `${again} -DJOINS=1`],
  ["READY_ONLY", `${soon} -DBOUND=1 ${can("MISS")}`],
];

const isQuick = (rule) => QUICK.includes(rule);
/** Their searches take longer than all others of the short version together. */
const LONG = ["LATE_VOTE_COUNTS", "SLOW_VOTES_COUNT", "NAMES_ANOTHER_RUN"];
const isShort = (rule) => !LONG.includes(rule);

const holds = (model, list, prefix = "") =>
  list.map(([name, full, quick]) => ({ model, name: `${prefix}${name}`, full, quick, expected: "holds" }));
const finds = (model, list, prefix = "", isIn = (_rule) => true) =>
  list.map(([rule, flags]) => {
    const full = `${flags} -DFLAW_${rule}`;
    const quick = isIn(rule) ? full : null;
    return { model, name: `${prefix}without a rule: ${rule}`, full, quick, expected: "found" };
  });

/** `model`: a file. `full`, `quick`: the flags of both versions; null: not in that one. */
export const RUNS = [
  ...holds("handoff.pml", HANDOFF_HOLDS),
  ...holds("quorum.pml", QUORUM_HOLDS),
  ...holds("handoff.pml", STAY_HOLDS, "stays: "),
  ...finds("handoff.pml", HANDOFF_FINDS),
  ...finds("quorum.pml", QUORUM_FINDS, "quorum: ", isShort),
  ...holds("counted.pml", COUNTED_HOLDS),
  ...finds("counted.pml", COUNTED_FINDS, "counted: ", isQuick),
  ...finds("handoff.pml", STAY_FINDS, "stays: ", isQuick),
  ...holds("remember.pml", REMEMBER_HOLDS, "remember: "),
  ...finds("remember.pml", REMEMBER_FINDS, "remember: ", isShort),
];

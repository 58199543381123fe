import { afterAll, afterEach, aroundEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { exemptionOf, idlePatterns, testsIn } from "../support/exemption.ts";
import type { TopologyKind } from "../support/servers/topology.ts";
import { aborting } from "./aborting.ts";
import { borrowing } from "./borrowing.ts";
import { closing } from "./closing.ts";
import { confirming } from "./confirming.ts";
import { disposal } from "./disposal.ts";
import { drainLoops } from "./drain-loops.ts";
import { endings } from "./endings.ts";
import { events } from "./events.ts";
import { exclusion } from "./exclusion.ts";
import { extension } from "./extension.ts";
import { forms } from "./forms.ts";
import { inspection } from "./inspection.ts";
import { exemptionsOf, KINDS, type Kind } from "./kinds.ts";
import { leases } from "./leases.ts";
import { leasesLeftBehind } from "./leases-left-behind.ts";
import { loss } from "./loss.ts";
import { names } from "./names.ts";
import { placesOf } from "./places.ts";
import { reentrance } from "./reentrance.ts";
import { renewal } from "./renewal.ts";
import { scopes } from "./scopes.ts";
import { sideBySide } from "./side-by-side.ts";
import { strangers } from "./strangers.ts";
import { Subject } from "./subject.ts";
import { tokens } from "./tokens.ts";
import { waiting } from "./waiting.ts";
import { wakeUps } from "./wake-ups.ts";

const THEMES = [
  exclusion,
  forms,
  wakeUps,
  names,
  waiting,
  aborting,
  borrowing,
  scopes,
  sideBySide,
  drainLoops,
  reentrance,
  strangers,
  leasesLeftBehind,
  // Of these the tests run side by side, and those of all of them together: most of their time they
  // wait for leases.
  leases,
  extension,
  loss,
  endings,
  confirming,
  renewal,
  disposal,
  inspection,
  events,
  closing,
];

/**
 * The contract that every lock kind keeps, wherever the suite that runs asks for it: on one server,
 * on every other topology, in memory. A new kind is a file `<kind>.contract.test.ts` with this one
 * line. Each kind has its own, because a run spreads files over its workers, and not what is in
 * them.
 *
 * @example describeLock("fairLock");
 */
export function describeLock(kind: Kind): void {
  const places = placesOf(kind);
  if (places.length === 0) it.skip("no requested topology supports this kind", () => {});
  for (const place of places) describeOn(kind, place);
}

function describeOn(kind: Kind, { name, launch, exemptions = [] }: TopologyKind): void {
  const exempt = [...exemptionsOf(kind), ...exemptions];
  describe(`${kind} on ${name}`, () => {
    const subject = new Subject(kind, launch);
    beforeAll(subject.open);
    aroundEach(subject.around);
    beforeEach(({ task, skip }) => {
      const why = exemptionOf(exempt, { theme: task.suite?.name ?? "", title: task.name });
      if (why !== undefined) skip(why);
    });
    afterEach(subject.leavesNothing);
    afterAll(subject.close);

    for (const theme of THEMES) theme(subject);
    // What these do to one server's clock has a meaning of its own for several: test/quorum/tokens.test.ts.
    if (KINDS[kind].tokens && !KINDS[kind].isQuorum) tokens(subject);

    it("has no exemption that matches no test", ({ task }) => {
      expect(idlePatterns(exempt, testsIn(task.suite))).toEqual([]);
    });
  });
}

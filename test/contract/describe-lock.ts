import { afterAll, afterEach, aroundEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Exemption, exemptionOf, idlePatterns, testsIn } from "../support/exemption.ts";
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
import { happyPath } from "./happy-path.ts";
import { inspection } from "./inspection.ts";
import { exemptionsOf, KINDS, type Kind } from "./kinds.ts";
import { leases } from "./leases.ts";
import { leasesLeftBehind } from "./leases-left-behind.ts";
import { loss } from "./loss.ts";
import { names } from "./names.ts";
import { placesOf, usualPlaceOf } from "./places.ts";
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
  happyPath,
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
 * The contract that every lock kind keeps. A new kind is a file `<kind>.contract.test.ts` with this
 * one line. Each kind has its own, because a run spreads files over its workers, and not what is in
 * them. `places`: where; left out: where the suite that runs asks for it.
 *
 * @example describeLock("fairLock");
 */
export function describeLock(kind: Kind, places: readonly TopologyKind[] = placesOf(kind)): void {
  if (places.length === 0) it.skip("no requested topology supports this kind", () => {});
  for (const place of places)
    describeOn(kind, place, (subject, exempt) => {
      for (const theme of THEMES) theme(subject);
      // What these do to one server's clock has a meaning of its own for several: test/quorum/tokens.test.ts.
      if (KINDS[kind].tokens && !KINDS[kind].isQuorum) tokens(subject);

      it("has no exemption that matches no test", ({ task }) => {
        expect(idlePatterns(exempt, testsIn(task.suite))).toEqual([]);
      });
    });
}

/** The part of the contract that the default suite runs on a real Redis. */
export function describeHappyPath(kind: Kind): void {
  describeOn(kind, usualPlaceOf(kind), happyPath);
}

function describeOn(
  kind: Kind,
  place: TopologyKind,
  themes: (subject: Subject, exempt: readonly Exemption[]) => void,
): void {
  const exempt = [...exemptionsOf(kind), ...(place.exemptions ?? [])];
  describe(`${kind} on ${place.name}`, () => {
    const subject = new Subject(kind, place);
    beforeAll(subject.open);
    aroundEach(subject.around);
    beforeEach(({ task, skip }) => {
      const why = exemptionOf(exempt, { theme: task.suite?.name ?? "", title: task.name });
      if (why !== undefined) skip(why);
    });
    afterEach(subject.leavesNothing);
    afterAll(subject.close);
    themes(subject, exempt);
  });
}

import { afterAll, it } from "vitest";
import { freshName, Parties } from "../support/fixture.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { LEASE, pauses } from "./paused-lease.ts";

// The process is paused for longer than a lease. On the first line that runs after that, each
// getter says that the lease is lost, also if it was read before: no timer has run yet.

const parties = new Parties();
afterAll(parties.close);
const quorum = new QuorumStage(3);
const lease = LEASE;

it("a lock says that it is lost on the first line after a pause", async () => {
  const { locks } = await parties.join();
  pauses(await locks.lock(freshName()).lock({ lease }));
});

it("a quorum's lock says that it is lost on the first line after a pause", async () => {
  const { locks } = await quorum.join();
  pauses(await locks.lock(quorum.name).lock({ lease }));
});
